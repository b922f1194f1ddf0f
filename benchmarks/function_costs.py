"""What each function of OpenCL C costs on each runtime, in scalar additions.

``python benchmarks/function_costs.py`` (a minute per device) runs a loop of calls of each function
on every CPU device that is here, in four independent chains a work-item, and takes off the same
loop without calls. Times are processor times of all threads, the least of several, so that other
programs disturb little; units are the time of a scalar addition, by the same loop and clock. *Loop*
calls it in a loop, *straight* without one: PoCL makes vectors of work-items only there.
`kernelcast.analytic.cpu.opencl.constants` holds the figures that the CPU model uses. Writes
``results/function_costs.json`` and ``.md``.
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
CALLS = {
    "divide": "0.7f / (V)", "sqrt": "sqrt(V)", "rsqrt": "rsqrt(V)", "cos": "cos(V)",
    "sin": "sin(V)", "sincos": "sincos(V, &rest) + rest", "tan": "tan(V)", "exp": "exp(V)",
    "exp2": "exp2(V)", "exp10": "exp10(V)", "log": "log(V)", "log2": "log2(V)",
    "log10": "log10(V)", "pow": "pow(V, 1.3f)", "tanh": "tanh(V)", "atan": "atan(V)",
    "atan2": "atan2(V, 0.7f)", "asin": "asin(0.5f * (V))", "acos": "acos(0.5f * (V))",
    "sinh": "sinh(V)", "cosh": "cosh(V)", "erf": "erf(V)", "erfc": "erfc(V)", "cbrt": "cbrt(V)",
    "hypot": "hypot(V, 0.7f)", "fmod": "fmod(V, 0.3f)", "native_exp": "native_exp(V)",
    "native_log": "native_log(V)", "native_cos": "native_cos(V)", "native_sin": "native_sin(V)",
    "native_rsqrt": "native_rsqrt(V)", "native_sqrt": "native_sqrt(V)",
    "native_recip": "native_recip(V)", "native_divide": "native_divide(0.7f, V)",
}  # fmt: skip
OWN_VECTORS = {
    f"{name}, {lanes} lanes": call.replace("V", f"(float{lanes})(V, 0.7f{', 0.3f' * (lanes - 2)})")
    for lanes in (2, 3, 4)
    for name, call in {
        "dot": "dot(V, V)", "length": "length(V)", "distance": "distance(V, 0.1f)",
        "normalize": "normalize(V).x", "fast_length": "fast_length(V)", "fabs": "fabs(V).x",
        "fmax": "fmax(V, 0.6f).x", "sqrt": "sqrt(V).x", "exp": "exp(V).x", "cos": "cos(V).x",
        "pow": "pow(V, 1.3f).x",
    }.items()
}  # fmt: skip
"""Calls with vectors of the kernel's own."""
NOTHING, ADDITION = "V", "(V) + 0.1f"
ITEMS, LOCAL, ROUNDS, STRAIGHT, REPEATS = 1 << 14, 64, 64, 12, 9
_SOURCE = """
kernel void run(global float *out, const int rounds) {
    float a = 0.5f + 1e-3f * (get_global_id(0) & 255), b = a + 0.1f, c = a + 0.2f, d = a + 0.3f;
    float rest = 0.0f;
    BODY
    out[get_global_id(0)] = a + b + c + d;
}
"""
# Keeps arguments between 0.5 and 1.5, where no function takes another way than usual.
_STEP = "{x} = fma({call}, 0.05f, 0.6f);"
_ADD = "{x} = {x} + 0.1f; {x} = {x} - 0.1f;"


def main() -> None:
    """Measure all CPU devices, and write."""
    found = find_devices()
    rows: dict[str, Any] = {}
    for description, _ in found:
        rows[description.id] = measure(open_session(*choose_device(description.id, found)))
        print(description.id, flush=True)
        content = {"machine": describe_machine(), "devices": rows}
        text = json.dumps(content, indent=1) + "\n"
        (RESULTS / "function_costs.json").write_text(text, encoding="utf-8")
        (RESULTS / "function_costs.md").write_text(render(rows), encoding="utf-8")


def measure(session: DeviceSession) -> dict[str, dict[str, float]]:
    """Give nanoseconds of a call of one core per work-item, in a loop and without one."""
    rows: dict[str, dict[str, float]] = {}
    # llvmpipe always makes vectors, and builds long straight code in minutes.
    is_slow = session.description.platform == "rusticl"
    for shape in ("loop",) if is_slow else ("loop", "straight"):
        empty = _time(session, NOTHING, shape)
        rows.setdefault("add", {})[shape] = (_time(session, ADDITION, shape) - empty) / 2
        for name, call in (CALLS | OWN_VECTORS).items():
            try:
                rows.setdefault(name, {})[shape] = _time(session, call, shape) - empty
            except (KernelcastError, cl.Error) as error:
                print(f"{name}: {str(error).splitlines()[0]}", flush=True)
    return rows


def _time(session: DeviceSession, call: str, shape: str) -> float:
    if call == ADDITION:
        steps = [_STEP.format(x=x, call=x) + _ADD.format(x=x) for x in "abcd"]
    else:
        steps = [_STEP.format(x=x, call=call.replace("V", x)) for x in "abcd"]
    one = "\n".join(steps)
    rounds = ROUNDS if shape == "loop" else STRAIGHT
    body = f"for (int k = 0; k < rounds; k++) {{ {one} }}" if shape == "loop" else one * rounds
    program = cl.Program(session.context, _SOURCE.replace("BODY", body)).build()
    kernel = program.run
    queue = cl.CommandQueue(session.context)
    out = cl.Buffer(session.context, cl.mem_flags.WRITE_ONLY, 4 * ITEMS)
    kernel.set_args(out, np.int32(rounds))
    # Launches of a few milliseconds: the clock of processor time ticks by microseconds.
    launches, least_s = 1, np.inf
    for _ in range(REPEATS):
        started_s = time.process_time()
        for _ in range(launches):
            cl.enqueue_nd_range_kernel(queue, kernel, (ITEMS,), (LOCAL,))
        queue.finish()
        spent_s = time.process_time() - started_s
        least_s = min(least_s, spent_s / launches)
        launches = max(launches, min(50, int(5e-3 / max(spent_s / launches, 1e-6))))
    return least_s * 1e9 / (ITEMS * 4 * rounds)


def render(rows: dict[str, Any]) -> str:
    """Write a table per device."""
    lines = ["# Functions of OpenCL C", "", *__doc__.split("\n\n")[1].splitlines()]
    for device, found in rows.items():
        lines += ["", f"## {device}", "", "| function | loop, ns | straight, ns |",
                  "|---|---:|---:|"]  # fmt: skip
        for name, one in found.items():
            lines.append(f"| `{name}` | {_cell(one, 'loop')} | {_cell(one, 'straight')} |")
    return "\n".join([*lines, ""])


def _cell(one: dict[str, float], shape: str) -> str:
    return f"{one[shape]:.3f}" if shape in one else ""


if __name__ == "__main__":
    main()
