"""What divisions of integers cost on each runtime, beside additions and products.

``python benchmarks/integer_costs.py`` (half a minute per device) runs a loop of operations on every
CPU device that is here, in four independent chains a work-item, and takes off the same loop without
them, as `function_costs.py` does: *loop* in a loop, *straight* without one, where PoCL makes
vectors of work-items. Times are processor times of all threads, the least of several. The CPU model
takes from it what a division takes in additions, of one number and of a register. Writes
``results/integer_costs.json`` and ``.md``.
"""

import json
import time
from pathlib import Path

import numpy as np
import pyopencl as cl
from machine import describe_machine

from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.session import DeviceSession, open_session

RESULTS = Path(__file__).resolve().parent / "results"
OPERATIONS = {
    "add": "V + key", "multiply": "V * key", "divide": "V / (key | 1)",
    "remainder": "V % (key | 1)", "divide by 7": "V / 7", "remainder by 7": "V % 7",
}  # fmt: skip
TYPES = {"int": np.int32, "uint": np.uint32, "long": np.int64, "ulong": np.uint64}
ITEMS, LOCAL, REPEATS = 1 << 14, 64, 9
ROUNDS = {"loop": 64, "straight": 12}
_LEAST_NS = 0.02
"""Of what is told from nothing."""
_SOURCE = """
kernel void run(global TYPE *out, const int rounds, const TYPE key) {
    TYPE a = (TYPE)get_global_id(0) + key, b = a + 1, c = a + 2, d = a + 3;
    BODY
    out[get_global_id(0)] = a + b + c + d;
}
"""
Costs = dict[str, float]


def main() -> None:
    """Measure all CPU devices, and write."""
    devices = find_devices()
    found: dict[str, dict[str, Costs]] = {}
    for description, _ in devices:
        session = open_session(*choose_device(description.id, devices))
        # llvmpipe always makes vectors, and builds long straight code in minutes.
        shapes = ["loop"] if description.platform == "rusticl" else [*ROUNDS]
        found[description.id] = {
            f"{name}, {shape}": measure(session, name, shape) for shape in shapes for name in TYPES
        }
    content = {"machine": describe_machine(), "nanoseconds": found}
    text = json.dumps(content, indent=1) + "\n"
    (RESULTS / "integer_costs.json").write_text(text, encoding="utf-8")
    (RESULTS / "integer_costs.md").write_text(render(found), encoding="utf-8")


def measure(session: DeviceSession, name: str, shape: str) -> Costs:
    """Give nanoseconds of an operation of one core per work-item."""
    empty = _time(session, name, "V", shape)
    return {what: _time(session, name, one, shape) - empty for what, one in OPERATIONS.items()}


def _time(session: DeviceSession, name: str, operation: str, shape: str) -> float:
    one = "".join(
        f"{x} = ({operation.replace('V', x)}) ^ {x}; {x} += {y};"
        for x, y in zip("abcd", "bcda", strict=True)
    )
    rounds = ROUNDS[shape]
    body = f"for (int k = 0; k < rounds; k++) {{ {one} }}" if shape == "loop" else one * rounds
    source = _SOURCE.replace("BODY", body).replace("TYPE", name)
    kernel = cl.Program(session.context, source).build().run
    queue = cl.CommandQueue(session.context)
    out = cl.Buffer(session.context, cl.mem_flags.WRITE_ONLY, 8 * ITEMS)
    kernel.set_args(out, np.int32(rounds), TYPES[name](13))
    launches, least_s = 1, np.inf
    for _ in range(REPEATS):
        started_s = time.process_time()
        for _ in range(launches):
            cl.enqueue_nd_range_kernel(queue, kernel, (ITEMS,), (LOCAL,))
        queue.finish()
        spent_s = (time.process_time() - started_s) / launches
        least_s = min(least_s, spent_s)
        launches = max(launches, min(50, int(5e-3 / max(spent_s, 1e-6))))
    return float(least_s) * 1e9 / (ITEMS * 4 * rounds)


def render(found: dict[str, dict[str, Costs]]) -> str:
    """Write a table per device: nanoseconds, and additions in brackets where these are known."""
    lines = ["# Operations on integers", "", *__doc__.split("\n\n")[1].splitlines()]
    for device, rows in found.items():
        lines += ["", f"## {device}", "", f"| type | {' | '.join(OPERATIONS)} |",
                  "|---|" + "---:|" * len(OPERATIONS)]  # fmt: skip
        for name, one in rows.items():
            is_known = one["add"] > _LEAST_NS
            cells = [f"{ns:.3f}" + f" ({ns / one['add']:.1f})" * is_known for ns in one.values()]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
