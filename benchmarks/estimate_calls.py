"""Lists the calls from `kernelcast estimate P.yaml` to the queue and back, from a traced run.

``python benchmarks/estimate_calls.py --device intel`` runs the command line, a live pyopencl
launch and the service's backend with a profile hook in every process. Of each process it keeps the
chain of our functions that stood on the stack when a sampled launch was enqueued, or while its
answer was awaited. What one way has and another lacks is listed too.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from machine import describe_machine

RESULTS = Path(__file__).parent / "results" / "estimate_calls"
PROBLEM = Path(__file__).parents[1] / "examples" / "triad" / "triad.yaml"
# The hook is loaded by every Python process that finds it on its path, before anything of ours.
HOOK = """
import atexit, json, os, sys
_DEEPEST, _GOALS = {}, {"enqueue_window", "receive"}
def _look(frame, event, arg):
    if event != "call" or frame.f_code.co_name not in _GOALS:
        return
    stack, is_ours = [], False
    one = frame
    while one is not None:
        name = one.f_globals.get("__name__", "")
        path = one.f_code.co_filename
        if "/kernelcast/" in path:
            stack.append(path.rpartition("/kernelcast/")[2][:-3].replace("/", ".") + ":"
                         + getattr(one.f_code, "co_qualname", one.f_code.co_name))
        one = one.f_back
    goal = frame.f_code.co_name
    if any(one.endswith(".count_work") for one in stack):  # a look at the source samples nothing
        return
    if stack and len(stack) > len(_DEEPEST.get(goal, ())):
        _DEEPEST[goal] = stack[::-1]
        with open(os.path.join(os.environ["CALLS_FOLDER"], f"{os.getpid()}.json"), "w") as out:
            json.dump(_DEEPEST, out)
if "CALLS_FOLDER" in os.environ:
    sys.setprofile(_look)
"""
LIVE = """
import pyopencl as cl, kernelcast
from kernelcast.sampling.discovery import describe_device
device = next(d for p in cl.get_platforms() for d in p.get_devices()
              if describe_device(d).id.startswith({device!r}))
context = cl.Context([device]); queue = cl.CommandQueue(context)
text = "kernel void f(global float *a) {{ size_t i = get_global_id(0); a[i] = 2 * a[i]; }}"
program = cl.Program(context, text).build()
kernel = cl.Kernel(program, "f")
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 << 22)
kernelcast.estimate(kernel, (1 << 22,), (64,), [buffer], queue=queue)
"""
SERVICE = """
from kernelcast.launches.devices import choose_devices
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.processes import CallerProcesses
from kernelcast.service.backend import Ask, Backend
backend = Backend({store!r}, None, CallerProcesses())
backend.sample(Ask(problem=read_problem({problem!r}), device=choose_devices([{device!r}])[0],
                   settings=EstimateSettings(uses_history=False), timeout_s=60.0))
"""


def trace(command: list[str], folder: Path) -> list[list[str]]:
    """Run a command; give each process's chain of calls, the one that samples last."""
    (folder / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
    calls = folder / "calls"
    calls.mkdir()
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "CALLS_FOLDER": str(calls),
        "KERNELCAST_DATA": str(folder / "data"),
    }
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    found = [json.loads(one.read_text(encoding="utf-8")) for one in calls.glob("*.json")]
    # A child that only waited for orders is not on the way: the service lists devices at its start.
    awaiting = [
        one["receive"]
        for one in found
        if "enqueue_window" not in one and not one["receive"][0].startswith("workers.child_main")
    ]
    sampling = [one["enqueue_window"] for one in found if "enqueue_window" in one]
    return [*awaiting, *sampling]


def summarise(chains: list[list[str]]) -> dict[str, Any]:
    """Count processes and different functions."""
    names = {name for chain in chains for name in chain if not name.endswith(">")}
    return {"processes": len(chains), "functions": len(names), "chains": chains}


def measure(device: str) -> dict[str, Any]:
    """Trace the three ways."""
    python = [sys.executable, "-c"]
    with tempfile.TemporaryDirectory() as place:
        ways = {
            "command line": [
                sys.executable, "-m", "kernelcast", "estimate", str(PROBLEM), "--device", device,
            ],
            "live launch": [*python, LIVE.format(device=device)],
            "service": [
                *python,
                SERVICE.format(
                    device=device, problem=str(PROBLEM), store=str(Path(place) / "s.sqlite")
                ),
            ],
        }  # fmt: skip
        found = {}
        for number, (name, command) in enumerate(ways.items()):
            folder = Path(place) / str(number)
            folder.mkdir()
            found[name] = summarise(trace(command, folder))
    return {"machine": describe_machine(), "device": device, "ways": found}


def main() -> None:
    """Trace, write the result and show it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="intel")
    asked = parser.parse_args()
    result = measure(asked.device)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{asked.device}.json").write_text(json.dumps(result, indent=1) + "\n")
    for name, way in result["ways"].items():
        print(f"{name}: {way['functions']} functions, {way['processes']} processes")
        for chain in way["chains"]:
            print("  " + "\n  ".join(chain) + "\n")


if __name__ == "__main__":
    main()
