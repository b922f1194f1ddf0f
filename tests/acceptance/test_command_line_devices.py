"""The command line on the devices of this machine; nothing is asserted of how fast they are."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from acceptance.conftest import Ask, Run
from support.device_queues import write_calibration
from support.processes import run_in_terminal

pytestmark = pytest.mark.device

PROGRAM = str(Path(sys.executable).with_name("kernelcast"))
# Small launches, so that a row takes no longer than building its kernel.
COLLECTION = (
    "--kernels", "dot_product", "--sizes", "3", "--local-sizes", "1", "--runs", "2",
    "--multiples", "0", "--no-counters", "--shortest", "0.01", "--longest", "0.03",
)  # fmt: skip


def name_all(device_ids: list[str]) -> list[str]:
    """Name every device that works, so that a broken one beside them changes nothing."""
    return [word for device_id in device_ids for word in ("--device", device_id)]


def test_devices_are_listed_and_tried(run: Run, run_process: Run, device_ids: list[str]) -> None:
    """Each has its facts, a trial and an id that fits; also where nothing can be written."""
    devices = run("devices", "--json").json()
    for device in devices:
        assert {
            "id", "name", "platform", "vendor", "driver", "opencl_version", "kind",
            "compute_units", "local_memory_bytes", "global_memory_bytes", "max_allocation_bytes",
            "max_work_group_size", "max_work_item_sizes", "extensions",
            "has_non_uniform_work_groups", "has_fp64", "timer", "status", "broken_reason",
        } <= device.keys()  # fmt: skip
    usable = [device for device in devices if device["status"] == "ok"]
    assert all(device["timer"].keys() == {"event_seconds", "host_seconds", "agrees"}
               for device in usable)  # fmt: skip
    assert [device["id"] for device in usable] == sorted(set(device_ids))
    environment = {**os.environ, "TERM": "dumb"}
    environment.pop("COLUMNS", None)
    shown = run_in_terminal([PROGRAM, "devices"], 80, environment)
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = shown.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert {device["id"] for device in devices} <= {word for line in lines for word in line.split()}
    nowhere = run_process("devices", "--json", HOME="/proc/nonexistent", KERNELCAST_DATA="",
                          XDG_CACHE_HOME="/dev/null/x", XDG_DATA_HOME="/dev/null/y")  # fmt: skip
    assert nowhere.status == 0, nowhere.stderr
    assert [device["id"] for device in nowhere.json()] == [device["id"] for device in devices]
    assert nowhere.stderr.count("caches are not kept") == 1
    assert "/dev/null/x: Not a directory" in nowhere.stderr


def test_estimates_hold_every_promised_key(
    run_process: Run, device_ids: list[str], problem: Path, list_documented: Ask
) -> None:
    """A measured estimate of each device is a JSON object with sane numbers and nothing else."""
    ended = run_process("estimate", problem, *name_all(device_ids), "--measure", "--runs", 3,
                        "--json")  # fmt: skip
    assert ended.status == 0, ended.stderr
    answers = ended.json()
    assert [answer["device_id"] for answer in answers] == device_ids
    documented = list_documented("estimate") - {"relative", "error_message"}
    nested = {"build_seconds", "rest_seconds", "slowdown", "pieces", "evidence", "set_aside",
              "contention"}  # fmt: skip
    for answer in answers:
        assert documented - nested <= answer.keys()
        assert {"linear", "analytic", "hybrid"} <= answer["estimates"].keys()
        assert {"seconds", "sampling_seconds", "build_seconds", "rest_seconds", "relative"} <= (
            answer["cost"].keys()
        )
        assert (answer["problem"], answer["kernel"]) == ("scale", "scale")
        assert (answer["global_size"], answer["local_size"]) == ([65536], [64])
        assert answer["work_groups"] == 1024
        assert 0 < answer["low"] <= answer["seconds"] <= answer["high"]
        assert answer["coverage"] == 0.9
        assert answer["sampling_seconds"] > 0
        assert answer["measured_runs"] == 3
        assert answer["noise"] >= 0
        predicted = answer["seconds"] * answer["measured_slowdown"]
        assert answer["error"] == pytest.approx(predicted / answer["measured_seconds"] - 1)
        assert answer["explanation"]["tier"] == answer["tier"]


@pytest.mark.usefixtures("home")
def test_estimates_are_explained_and_kept_for_an_hour(
    run: Run, ask: Ask, device_ids: list[str], problem: Path
) -> None:
    """A device is chosen by the beginning of its id; a repeat runs nothing unless told to."""
    device = device_ids[0]
    chosen = ("estimate", problem, "-p", "N=2**22", "--device", device[: len(device) - 2])
    first = run(*chosen, "--explain")
    assert first.status == 0
    assert device in first.stdout
    assert "answered by:" in first.stdout
    assert "rests on samples" not in first.stdout + first.stderr
    again = run(*chosen, "--least-gain", 1000)
    assert "rests on samples taken" in again.stdout + again.stderr
    assert "answered by:" not in again.stdout
    (answer,) = ask(*chosen, "--no-history", "--coverage", 0.5)
    assert answer["device_id"] == device
    assert answer["global_size"] == [2**22]
    assert answer["coverage"] == 0.5
    (wider,) = ask(*chosen, "--least-gain", 1000, "--coverage", 0.99)
    assert wider["high"] / wider["low"] > answer["high"] / answer["low"]
    refused = run("estimate", problem, "--device", "none-such")
    assert (refused.status, refused.stdout) == (2, "")
    assert "device 'none-such' is unknown" in refused.stderr
    assert all(device_id in refused.stderr for device_id in device_ids)
    blind = run("estimate", problem, "-p", "N=1024", "--no-sampling", "--device", device)
    assert blind.status == 1
    assert "kernelcast calibrate" in blind.stderr


def test_failures_of_devices_and_of_files_have_their_status(
    run: Run, device_ids: list[str], problem: Path
) -> None:
    """1 with an object that says why, 2 for bad input; good problems are answered beside bad."""
    device = device_ids[0]
    late = run("estimate", problem, "-p", "N=2**20", "--no-history", "--device", device,
               "--timeout", "0.001", "--json")  # fmt: skip
    assert late.status == 1
    (failed,) = late.json()
    assert failed["device_id"] == device
    assert "0.001" in failed["error_message"]
    assert "0.001" in late.stderr
    broken = problem.with_name("broken.yaml")
    text = problem.read_text(encoding="utf-8")
    broken.write_text(text.replace("float sum = x[i];", "float sum = ;"), encoding="utf-8")
    ended = run("estimate", broken, problem, problem.with_name("none.yaml"), "--device", device,
                "--json")  # fmt: skip
    assert ended.status == 2
    assert "none.yaml" in ended.stderr
    assert "broken" in ended.stderr
    by_problem = {answer["problem"]: answer for answer in ended.json()}
    assert by_problem["scale"]["seconds"] > 0
    assert "error_message" not in by_problem["scale"]


def test_recordings_are_replayed_to_the_same_answer(
    run: Run, ask: Ask, device_ids: list[str], problem: Path, tmp_path: Path
) -> None:
    """`--record` keeps the samples of all devices; `--replay` gives their estimates again."""
    file = tmp_path / "samples.json"
    recorded = ask("estimate", problem, *name_all(device_ids), "--measure", "--runs", 2, "--seed",
                   7, "--record", file)  # fmt: skip
    assert "sum" not in file.read_text(encoding="utf-8")  # no line of the source
    replayed = ask("estimate", problem, "--measure", "--replay", file)
    whole = ask("estimate", "--replay", file)
    assert [answer["device_id"] for answer in recorded] == device_ids
    for before, after, alone in zip(recorded, replayed, whole, strict=True):
        for key in ("device_id", "kernel", "global_size", "tier", "p_sat", "sample_work_groups"):
            assert before[key] == after[key] == alone[key]
        for key in ("seconds", "low", "high", "measured_seconds", "error"):
            assert after[key] == pytest.approx(before[key], rel=0.01)
        assert alone["seconds"] == pytest.approx(before["seconds"], rel=0.01)
    (one,) = ask("estimate", "--replay", file, "--device", device_ids[0])
    assert one["seconds"] == whole[0]["seconds"]
    other = run("estimate", problem, "-p", "N=1024", "--replay", file)
    assert (other.status, other.stdout) == (2, "")
    assert "no recording of scale with this source, build options and sizes" in other.stderr


def test_devices_add_features(
    ask: Ask, device_ids: list[str], home: Path, repository: Path
) -> None:
    """Every device gives the sampling paper's Table 1 without privileges, once it is calibrated."""
    for device_id in device_ids:
        write_calibration(home, device_id)
    matrix = repository / "examples/matmul_tiled/matmul_tiled.yaml"
    words = ("features", matrix, "-p", "N=256", *name_all(device_ids))
    groups = ("static", "compiler", "sampled", "counters", "analytic")
    (features,) = ask(*words, *(word for group in groups for word in ("--group", group)))
    page = (repository / "docs/reference/features.md").read_text(encoding="utf-8")
    table_1 = page.partition("## Table 1")[2].partition("## `static`")[0]
    # Only NVIDIA's compiler tells registers; miss rates depend on what the caches' model can say.
    wanted = {
        name for line in table_1.splitlines()
        if not line.startswith(("| registers per work-item", "| L1/L2 miss rate"))
        for name in re.findall(r"`(\w+\.\w+)`", line)
    }  # fmt: skip
    assert len(wanted) == 15
    assert [device["device_id"] for device in features["devices"]] == device_ids
    for device in features["devices"]:
        assert {"device", "device_id", "local_size", "compiler", "counters", "vector", "notes",
                "costs_seconds"} <= device.keys()  # fmt: skip
        found = device["vector"]["features"]
        assert wanted <= found.keys()
        assert device["notes"] == []
        assert found["analytic.estimate_s"] > 0
        assert found["counters.measured_flag"] == 1
        assert found["counters.flops_per_work_item"] == 4 * (2 * 256 + 1)


def test_work_groups_are_traced(
    ask: Ask, device_ids: list[str], problem: Path, tmp_path: Path
) -> None:
    """Begins and ends of work-groups by a clock, or steps."""
    chosen = ("--device", device_ids[0])
    chart = tmp_path / "trace.svg"
    (trace,) = ask("trace", problem, "--work-groups", 128, *chosen, "--plot", chart)
    assert {
        "device", "device_id", "problem", "kernel", "global_size", "local_size", "work_groups",
        "traced_work_groups", "compute_units", "method", "reason", "concurrency", "p_sat",
        "probe_concurrency", "staircase", "run_length", "timeline", "steps",
    } <= trace.keys()  # fmt: skip
    if trace["method"] == "clock":
        starts, ends = (trace["timeline"][f"{side}_seconds"] for side in ("starts", "finishes"))
        assert len(starts) == trace["traced_work_groups"] == 128
        assert all(start <= end for start, end in zip(starts, ends, strict=True))
    else:
        assert trace["timeline"] is None
    assert "</svg>" in chart.read_text(encoding="utf-8")
    (steps,) = ask("trace", problem, *chosen, "--method", "steps")
    assert (steps["method"], steps["reason"], steps["timeline"]) == ("steps", "asked for", None)
    assert steps["steps"]["work_groups"][0] == 1


def test_one_kernel_runs_over_all_devices(
    ask: Ask, device_ids: list[str], problem: Path, tmp_path: Path
) -> None:
    """`balance` runs each work-group once, and the buffers hold what one device would write."""
    problem.write_text(
        problem.read_text(encoding="utf-8").replace("init: uniform", "init: arange"),
        encoding="utf-8",
    )
    out = tmp_path / "buffers"
    out.mkdir()
    report = ask("balance", problem, *name_all(device_ids), "--timeout", 60, "--out", out)
    assert {
        "kernel", "global_size", "local_size", "work_groups", "axis", "slabs", "merges",
        "estimated_seconds", "seconds", "prepare_seconds", "merge_seconds", "total_seconds",
        "devices", "timeline", "notes",
    } <= report.keys()  # fmt: skip
    assert [device["device_id"] for device in report["devices"]] == device_ids
    assert sum(device["work_groups"] for device in report["devices"]) == 1024
    assert sum(device["share"] for device in report["devices"]) == pytest.approx(1)
    assert {"device", "activity", "start", "end", "work_groups"} <= report["timeline"][0].keys()
    # After 64 steps of y = y / 2 + 1 nothing is left of where it began.
    (written,) = out.glob("*.npy")
    assert written.stem == "y"
    assert np.load(written) == pytest.approx(np.full(65536, 2.0))


def test_configurations_are_ranked_and_measured(
    ask: Ask, run: Run, device_ids: list[str], home: Path, tuned: Path, tmp_path: Path
) -> None:
    """`tune` measures what can be built, and writes a T4 file."""
    device = device_ids[0]
    write_calibration(home, device)
    words = ("tune", tuned, "--device", device, "--param", "BROKEN=0")
    (ranked,) = ask(*words)
    assert {"problem", "device", "device_id", "configurations"} <= ranked.keys()
    t4 = tmp_path / "t4.json"
    ended = run(*words, "--measure", "--runs", 1, "--t4", t4)
    assert ended.status == 0, ended.stderr
    assert "use: LX=" in ended.stdout
    assert t4.is_file()
    # The analytic model answers without running anything, now that there is a description.
    (blind,) = ask("estimate", tuned, "--no-sampling", "--device", device, "-p", "LX=64", "-p",
                   "BROKEN=0")  # fmt: skip
    assert (blind["tier"], blind["sampling_seconds"]) == ("analytic", 0)
    assert blind["low"] < blind["seconds"] < blind["high"]


def test_a_calibration_writes_a_description(ask: Ask, device_ids: list[str], home: Path) -> None:
    """A microbenchmark runs, and what it finds is in a file that other commands take."""
    (answer,) = ask("calibrate", "--quick", "--device", device_ids[0], "--only", "launch")
    assert {"device", "device_id", "file", "durations_seconds", "resumed", "failed",
            "machine"} <= answer.keys()  # fmt: skip
    assert (list(answer["durations_seconds"]), answer["failed"]) == (["launch"], {})
    assert Path(answer["file"]) == home / "machines" / f"{device_ids[0]}.yaml"
    launch = answer["machine"]["costs"]["launch_s"]
    assert launch["source"] == "measured"
    assert 1e-8 < launch["value"] < 1.0
    (shown,) = ask("calibrate", "--machine", device_ids[0])
    assert shown["machine"] == answer["machine"]


def test_a_kernel_of_the_corpus_is_checked(ask: Ask, device_ids: list[str]) -> None:
    """It computes on the device what its reference computes."""
    (row,) = ask("corpus", "check", "blackscholes", "--device", device_ids[0])
    assert {"kernel", "device_id", "status", "explanation", "seconds"} <= row.keys()
    assert (row["kernel"], row["device_id"], row["status"]) == (
        "blackscholes/blackscholes", device_ids[0], "passed",
    )  # fmt: skip


def test_ctrl_c_keeps_what_was_collected(ask: Ask, device_ids: list[str], home: Path) -> None:
    """`collect` ends with 130 and keeps its rows; the same command goes on with the others."""
    words = ("collect", "--device", device_ids[0], *COLLECTION)
    running = subprocess.Popen(
        [PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    store = home / "observations.sqlite"
    while running.poll() is None and not (store.is_file() and ask("data", "ls")):
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate()
    assert running.returncode == 130, errors
    assert "Traceback" not in errors
    kept = {row["launch_key"] for row in ask("data", "ls", "--rows")}
    assert kept
    (told,) = ask(*words)
    assert {"device_id", "kernels", "measured", "present", "disturbed", "skipped", "failures",
            "errors"} <= told.keys()  # fmt: skip
    rows = ask("data", "ls", "--rows")
    launches = {row["launch_key"] for row in rows}
    assert kept <= launches
    assert told["failures"] == []
    assert len(launches) == len(rows) == told["measured"] + told["present"]
    assert ask("data", "check") == []


def test_a_newcomer_collects_trains_and_compares(
    ask: Ask, device_ids: list[str], home: Path, repository: Path
) -> None:
    """Three kernels of one's own in a folder, three commands; what others do meanwhile is kept."""
    folder = home / "kernels"
    folder.mkdir(parents=True)
    for name in ("nbody", "transcendental", "transpose"):
        for path in (repository / "examples" / name).glob(f"{name}.*"):
            shutil.copy(path, folder)
    device = device_ids[0]
    (told,) = ask(
        "collect", "--problems", folder, "--device", device, "--sizes", 2, "--runs", 2,
        "--shortest", "0.01", "--longest", "0.03", "--least-work-groups", 16, "--no-counters",
        "--most-others", 64, "--worst-noise", 100,
    )  # fmt: skip
    assert (told["kernels"], told["measured"], told["failures"]) == (3, 6, [])
    trained = ask("train", "--no-validation", "--jobs", 1)
    assert (trained[0]["name"], trained[0]["rows"]) == (f"hybrid/{device}", 6)
    compared = ask("compare", "linear", "learned", "--shortest", 0, "--least-work-groups", 0,
                   "--jobs", 1)  # fmt: skip
    assert {row["method"] for row in compared["scores"]} == {"linear", "learned"}
    (pair,) = compared["pairs"]
    assert (pair["families"], pair["p"], pair["nearer"]) == (3, None, "")
