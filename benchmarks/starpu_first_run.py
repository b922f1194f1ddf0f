"""StarPU's first run with exported models, beside uncalibrated and calibrated runs.

Runs `examples/starpu/tasks` with scheduler dmda on one CPU worker and one OpenCL worker of one core
each, in four ways, one after the other within each repeat:

exported      no run before: models by `kernelcast starpu export`
uncalibrated  no run before, no model: StarPU deals tasks out while it calibrates
calibrated    after ten runs with STARPU_CALIBRATE=1
eager         no model used: StarPU's default-like scheduler with one queue, for comparison

    python benchmarks/starpu_first_run.py [--device ID] [--icd FILE] [--repeats 10] [--out FOLDER]

Each run starts from a copy of its models, so no run learns from another. All share the bus
measurements that StarPU makes once. Kernels are compiled and launched once before the clock starts.
Needs Debian's libstarpu-dev, starpu-tools and two cores; let nothing else run.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from machine import describe_machine

from kernelcast.records.errors import InputError
from kernelcast.scheduling.starpu.model_text import read_model

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "starpu"
RESULTS = ROOT / "benchmarks" / "results" / "starpu_first_run"
CALIBRATION_RUNS = 10
TIMEOUT_S = 600
OPENCL_CORE, CPU_CORE = 0, 1
MODES = ("exported", "uncalibrated", "calibrated", "eager")


def main() -> None:
    """Export, calibrate, run the modes in turn, write the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="pocl", help="id of the device, or its beginning")
    parser.add_argument("--icd", type=Path, default=Path("/etc/OpenCL/vendors/pocl.icd"))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--tasks", type=int, default=8, help="tasks of each codelet and size")
    parser.add_argument("--calibration-runs", type=int, default=CALIBRATION_RUNS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    subprocess.run(["make", "-s"], cwd=EXAMPLE, check=True)
    with tempfile.TemporaryDirectory(prefix="kc-starpu-") as name:
        bench = Bench(Path(name), options)
        exported = bench.export()
        bench.calibrate()
        runs = bench.run_all()
    result = {
        "machine": describe_machine(),
        "starpu": _version(),
        "workers": {"cpu": 1, "opencl": 1, "scheduler": "dmda"},
        "tasks_per_codelet_and_size": options.tasks,
        "calibration_runs": options.calibration_runs,
        **summarise(runs, exported, bench.calibrated_means),
    }
    device = exported[0]["device_id"]
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{device}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: result[key] for key in ("median_seconds", "ratios")}, indent=1))
    print(f"wrote {path}")


class Bench:
    """The folders and environments of one benchmark."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.folder = folder
        self.options = options
        self.calibrated_means: dict[tuple[str, str, str], float] = {}
        vendors = folder / "vendors"
        vendors.mkdir()
        shutil.copy(options.icd, vendors)
        self.environment = {
            **os.environ,
            "OCL_ICD_VENDORS": str(vendors),
            # One thread for the OpenCL device, on the core of its StarPU worker.
            "POCL_MAX_PTHREAD_COUNT": "1",
            "POCL_CPU_MAX_CU_COUNT": "1",
            "POCL_AFFINITY": "1",
            "DPCPP_CPU_NUM_CUS": "1",
        }

    def export(self) -> list[dict[str, Any]]:
        """Sample the CPU functions and the kernels; write the models."""
        times = self.folder / "times.json"
        sampled = subprocess.run(
            ["taskset", "-c", str(CPU_CORE), "./tasks", "--sample"],
            cwd=EXAMPLE, env=self.environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        times.write_text(sampled.stdout, encoding="utf-8")
        device = ("--device", f"opencl0={self.options.device}") if self.options.device else ()
        done = subprocess.run(
            ["taskset", "-c", str(OPENCL_CORE), sys.executable, "-m", "kernelcast", "starpu",
             "export", str(EXAMPLE / "kernels" / "codelets.yaml"), "--times", str(times), "--into",
             str(self.folder / "exported"), *device, "--json"],
            env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            sys.exit(done.stderr)
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    def calibrate(self) -> None:
        """Let StarPU calibrate; also measures the bus, which all modes share."""
        folder = self.folder / "calibrated"
        folder.mkdir()
        for number in range(self.options.calibration_runs):
            self.run(folder, {"STARPU_CALIBRATE": "1"}, seed=1000 + number)
        for path in (folder / "codelets" / "45").iterdir():
            symbol = path.name.partition(".")[0]
            try:
                model = read_model(path.read_text(encoding="ascii"), symbol=symbol)
            except InputError:  # too few runs for any time
                continue
            for worker, entries in model.entries.items():
                for one in entries:
                    key = (symbol, str(worker), f"{one.footprint:08x}")
                    self.calibrated_means[key] = one.seconds

    def run_all(self) -> list[dict[str, Any]]:
        """Run every mode in every repeat, beginning with another one each time."""
        runs = []
        for repeat in range(self.options.repeats):
            for place in range(len(MODES)):
                mode = MODES[(place + repeat) % len(MODES)]
                found = self.run_mode(mode, seed=repeat)
                runs.append({"mode": mode, "repeat": repeat, **found})
                print(f"{repeat} {mode}: {found['makespan_seconds']:.3f} s", file=sys.stderr)
        return runs

    def run_mode(self, mode: str, *, seed: int) -> dict[str, Any]:
        """Run the program once from a fresh copy of the mode's models."""
        folder = self.folder / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copytree(self.folder / "calibrated" / "bus", folder / "bus")
        if mode in {"exported", "calibrated"}:
            shutil.copytree(self.folder / mode / "codelets", folder / "codelets")
        changes = {"STARPU_CALIBRATE": "0"}
        if mode == "eager":
            changes["STARPU_SCHED"] = "eager"
        return self.run(folder, changes, seed=seed)

    def run(self, models: Path, changes: Mapping[str, str], *, seed: int) -> dict[str, Any]:
        """Run the program on a folder of models."""
        environment = {
            **self.environment,
            "STARPU_PERF_MODEL_DIR": str(models),
            "STARPU_SCHED": "dmda",
            "STARPU_OPENCL_ON_CPUS": "1",
            "STARPU_NOPENCL": "1",
            "STARPU_NCPU": "1",
            "STARPU_NCUDA": "0",
            "STARPU_WORKERS_CPUID": f"{OPENCL_CORE} {CPU_CORE}",  # OpenCL workers come first
            **changes,
        }
        command = ["./tasks", "--tasks", str(self.options.tasks), "--seed", str(seed), "--check"]
        done = subprocess.run(
            command, cwd=EXAMPLE, env=environment, capture_output=True, text=True, check=False,
            timeout=TIMEOUT_S,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def summarise(
    runs: Sequence[Mapping[str, Any]],
    exported: Sequence[Mapping[str, Any]],
    calibrated: Mapping[tuple[str, str, str], float],
) -> dict[str, Any]:
    """Give medians, ratios per repeat, and how far predictions were from StarPU's measurements."""
    makespans = {
        mode: [one["makespan_seconds"] for one in runs if one["mode"] == mode] for mode in MODES
    }
    ratios = {
        f"exported / {other}": _describe(
            [a / b for a, b in zip(makespans["exported"], makespans[other], strict=True)]
        )
        for other in MODES[1:]
    }
    times = [
        {
            **{key: one[key] for key in ("codelet", "worker", "parameters", "origin")},
            "predicted_seconds": one["seconds"],
            "calibrated_seconds": calibrated.get((one["codelet"], one["worker"], one["footprint"])),
            "seconds_in_exported_runs": _median_of(runs, one),
        }
        for one in exported
    ]
    return {
        "makespan_seconds": makespans,
        "median_seconds": {mode: median(found) for mode, found in makespans.items()},
        "ratios": ratios,
        "times": times,
        "tasks_on_opencl": {
            mode: median(
                sum(task["worker"] == "opencl0" for task in one["tasks"])
                for one in runs
                if one["mode"] == mode
            )
            for mode in MODES
        },
        "largest_difference_of_results": max(one["largest_difference"] for one in runs),
    }


def _median_of(runs: Sequence[Mapping[str, Any]], wanted: Mapping[str, Any]) -> float | None:
    worker = wanted["worker"].partition("_impl")[0]
    found = [
        float(task["seconds"])
        for one in runs
        if one["mode"] == "exported"
        for task in one["tasks"]
        if (task["codelet"], task["footprint"]) == (wanted["codelet"], wanted["footprint"])
        and task["worker"].rstrip("0") == worker.rstrip("0")
    ]
    return median(found) if found else None


def _describe(values: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(median(values), 4),
        "least": round(min(values), 4),
        "most": round(max(values), 4),
    }


def _version() -> str:
    done = subprocess.run(
        ["pkg-config", "--modversion", "starpu-1.3"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


if __name__ == "__main__":
    main()
