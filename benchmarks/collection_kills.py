"""Kills a collection at random moments and counts what was lost: nothing should be.

``python benchmarks/collection_kills.py --kills 20`` collects some kernels with very short launches,
kills the whole process group with SIGKILL at random moments, lets it go on until all rows are
there, and compares the rows with those of a collection that nobody disturbed.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import describe_machine

from kernelcast.training_data.check import check_store
from kernelcast.training_data.store import open_store

RESULTS = Path(__file__).parent / "results" / "collection_kills"
_LONGEST_WAIT_S = 12.0


def start(data: Path, device: str, kernels: list[str]) -> subprocess.Popen[bytes]:
    """Start a collection in a session of its own."""
    chosen = [word for kernel in kernels for word in ("--kernels", kernel)]
    return subprocess.Popen(
        [sys.executable, "-m", "kernelcast", "collect", "--device", device, *chosen,
         "--sizes", "4", "--runs", "2", "--shortest", "0.02", "--longest", "0.08", "--json"],
        env={**os.environ, "KERNELCAST_DATA": str(data)},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip


def read_keys(data: Path) -> set[str]:
    """Give the launches that have rows or failures."""
    path = data / "observations.sqlite"
    if not path.is_file():
        return set()
    with open_store(path) as store:
        observed = {one.launch.key for one in store.find()}
        return observed | {one.launch.key for one in store.failures()}


def run(device: str, kernels: list[str], kills: int, seed: int) -> dict[str, object]:
    """Collect with kills, and without."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        killed, calm = Path(folder) / "killed", Path(folder) / "calm"
        done, lost = 0, 0
        before: set[str] = set()
        while True:
            process = start(killed, device, kernels)
            try:
                process.wait(rng.uniform(0.5, _LONGEST_WAIT_S) if done < kills else None)
                break
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                done += 1
                time.sleep(0.2)
                now = read_keys(killed)
                lost += len(before - now)
                before = now
                print(f"kill {done} of {kills}: {len(now)} rows", flush=True)
        # The same sizes, so that both have the same rows to measure.
        shutil.copytree(killed / "collection", calm / "collection")
        start(calm, device, kernels).wait()
        with open_store(killed / "observations.sqlite") as store:
            findings = [str(one) for one in check_store(store)]
            duplicates = store.count() - len({one.launch.key for one in store.find()})
        ours, theirs = read_keys(killed), read_keys(calm)
        return {
            "machine": describe_machine(),
            "device": device,
            "kernels": kernels,
            "kills": done,
            "rows": len(ours),
            "rows_lost_at_a_kill": lost,
            "duplicates": duplicates,
            "only_with_kills": len(ours - theirs),
            "only_without_kills": len(theirs - ours),
            "findings_of_data_check": findings,
        }


def main() -> None:
    """Run and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="intel")
    parser.add_argument("--kernels", action="append", default=[])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    kernels = asked.kernels or ["nbody", "mat_vec_mul", "binomial", "dot_product", "median_filter"]
    result = run(asked.device, kernels, asked.kills, asked.seed)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{asked.device}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({k: v for k, v in result.items() if k != "machine"}, indent=1))


if __name__ == "__main__":
    main()
