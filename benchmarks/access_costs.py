"""What loads and stores cost on each runtime, by where the lanes of a vector go.

``python benchmarks/access_costs.py`` (a minute per device) runs a loop with one access per
iteration on every CPU device that is here, data in the nearest cache, and takes off the same loop
without it. Times are processor times of all threads, the least of several, so that other programs
disturb little. The CPU model takes from it that scattered lanes of 8 and 16 bits cost what those of
32 do where vectors have mask registers, and that llvmpipe loads lane by lane whatever the pattern.
Writes ``results/access_costs.json`` and ``.md``.
"""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
from machine import describe_machine

from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.session import DeviceSession, open_session

RESULTS = Path(__file__).resolve().parent / "results"
LOADS = {
    "one address": "in[k & mask]",
    "side by side": "in[l + (k & seven)]",
    "side by side, some lanes left out": "(j > k ? in[l + (k & seven)] : 0)",
    "side by side, index narrowed from 64 bits": "in[(int)(get_global_id(0) + (k & seven)) & mask]",
    "every other": "in[2 * l + (k & seven)]",
    "anywhere": "in[(j + k) & mask]",
    "anywhere, some lanes left out": "(j + l > k ? in[(j + k) & mask] : 0)",
}
STORES = {"stored side by side": "l + (k & seven)", "stored every other": "2 * l + (k & seven)"}
OWN = {
    "own array, element by data": "own[(j + k) & 15]",
    "own array, element by data, updated": "own[(j + k) & 15] += k",
}
"""Elements of a work-item's own array that no compiler can hold in registers."""
TYPES = {"int": 4, "short": 2, "uchar": 1}
LOCAL, ROUNDS, REPEATS = 64, 1600, 7
ITEMS = {"rusticl": 1 << 13}
USUAL_ITEMS = 1 << 16
_SOURCE = """
kernel void run(global const TYPE *restrict in, global const int *restrict start,
                global TYPE *restrict stored, global int *restrict out, const int rounds,
                const int mask, const int seven) {
    const int l = get_local_id(0);
    const int j = start[get_global_id(0) & mask];
    OWN
    int sum = 0;
    for (int k = 0; k < rounds; ++k) {
        sum += k ^ seven;
        BODY
    }
    out[get_global_id(0)] = sum LAST;
}
"""


def main() -> None:
    """Measure all CPU devices, and write."""
    found = find_devices()
    rows: dict[str, Any] = {}
    for description, _ in found:
        rows[description.id] = measure(open_session(*choose_device(description.id, found)))
        print(description.id, flush=True)
    content = {"machine": describe_machine(), "devices": rows}
    (RESULTS / "access_costs.json").write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    (RESULTS / "access_costs.md").write_text(render(rows), "utf-8")


def measure(session: DeviceSession) -> dict[str, dict[str, float]]:
    """Give nanoseconds of an access of one core per work-item, by pattern and type."""
    rows: dict[str, dict[str, float]] = {}
    bodies = {name: f"sum += {text};" for name, text in LOADS.items()}
    bodies |= {name: f"stored[{text}] = k;" for name, text in STORES.items()}
    bodies |= {name: f"sum += {text};" for name, text in OWN.items()}
    for kind in TYPES:
        empty = _time(session, kind, "")
        for name, body in bodies.items():
            try:
                told = _time(session, kind, body) - empty
            except (KernelcastError, cl.Error) as error:
                print(f"{name}: {str(error).splitlines()[0]}", flush=True)
                continue
            rows.setdefault(name, {})[kind] = told
    return rows


def _time(session: DeviceSession, kind: str, body: str) -> float:
    context = session.context
    queue = cl.CommandQueue(context)
    own = "TYPE own[16]; for (int e = 0; e < 16; ++e) own[e] = in[j + e];" if "own[" in body else ""
    parts = {"OWN": own, "LAST": "+ own[sum & 15]" if own else "", "BODY": body, "TYPE": kind}
    source = _SOURCE
    for name, text in parts.items():
        source = source.replace(name, text)
    kernel = cl.Program(context, source).build().run
    items = ITEMS.get(session.description.platform, USUAL_ITEMS)
    numbers = np.arange(1 << 12, dtype=np.int32) * 7919 % 997
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    filled = [cl.Buffer(context, flags, hostbuf=numbers) for _ in range(3)]
    out = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * items)

    def run(rounds: int) -> float:
        began_s = time.process_time()
        kernel(
            queue, (items,), (LOCAL,), *filled, out, np.int32(rounds), np.int32(1023), np.int32(7)
        )
        queue.finish()
        return time.process_time() - began_s

    run(8)
    least_s = min(run(ROUNDS) - run(ROUNDS // 4) for _ in range(REPEATS))
    return 1e9 * least_s / (items * (ROUNDS - ROUNDS // 4))


def render(rows: dict[str, Any]) -> str:
    """Write a table per device."""
    lines = ["# What loads and stores cost", "", *__doc__.split("\n\n")[1].splitlines(), ""]
    for device, found in rows.items():
        lines += [f"## {device}", "", "Nanoseconds of a core per work-item.", ""]
        lines += ["| lanes | " + " | ".join(TYPES) + " |", "|---|" + "---:|" * len(TYPES)]
        for name, told in found.items():
            cells = " | ".join(f"{told[one]:.3f}" if one in told else "" for one in TYPES)
            lines.append(f"| {name} | {cells} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
