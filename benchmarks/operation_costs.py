"""What functions, integer operations and accesses cost on each runtime, in nanoseconds of a core.

``python -m benchmarks operation_costs [TABLE ...]`` (two minutes per device and table) runs a loop
of one operation per iteration on every CPU device that is here, and takes off the same loop without
it; of functions and integers in four independent chains a work-item. *Straight* is the same without
a loop: PoCL makes vectors of work-items only there. Times are processor times of all threads, the
least of several, so that other programs disturb little. The CPU model takes its costs of functions
(`kernelcast.analytic.cpu.opencl.device`) and of divisions from it, that scattered lanes of 8
and 16 bits cost what those of 32 do where vectors have mask registers, what PoCL's loads take by
stride, and that llvmpipe loads vectors number by number, and what no lane asks for. Writes
``results/operation_costs/TABLE.json``, where devices of other machines stay, and ``summary.md``.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyopencl as cl
from harness import RESULTS, make_table, read_json, write_json, write_text
from machine import describe_machine

from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.session import DeviceSession, open_session

FOLDER = RESULTS / "operation_costs"
Rows = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One operation: its place in the table, its source and the same without it."""

    row: str
    column: str
    source: str
    empty: str
    rounds: int
    repeats: int = 1
    """How often a round does it."""
    arguments: tuple[object, ...] = ()


_ITEMS, _LOCAL, _REPEATS = 1 << 14, 64, 9
_ROUNDS = {"loop": 64, "straight": 12}
_NEXT = dict(zip("abcd", "bcda", strict=True))
"""The chains, each with another."""
_FUNCTIONS = {
    "add": "(V + 0.1f)", "divide": "0.7f / (V)",
    **{name: f"{name}(V)" for name in (
        "sqrt", "rsqrt", "cos", "sin", "tan", "exp", "exp2", "exp10", "log", "log2", "log10",
        "tanh", "atan", "sinh", "cosh", "erf", "erfc", "cbrt", "native_exp", "native_log",
        "native_cos", "native_sin", "native_rsqrt", "native_sqrt", "native_recip",
    )},
    "sincos": "sincos(V, &rest) + rest", "pow": "pow(V, 1.3f)", "atan2": "atan2(V, 0.7f)",
    "asin": "asin(0.5f * (V))", "acos": "acos(0.5f * (V))", "hypot": "hypot(V, 0.7f)",
    "fmod": "fmod(V, 0.3f)", "native_divide": "native_divide(0.7f, V)",
}  # fmt: skip
_OWN_VECTORS = {
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
_FLOAT_SOURCE = """
kernel void run(global float *out, const int rounds) {
    float a = 0.5f + 1e-3f * (get_global_id(0) & 255), b = a + 0.1f, c = a + 0.2f, d = a + 0.3f;
    float rest = 0.0f;
    BODY
    out[get_global_id(0)] = a + b + c + d;
}
"""
# Keeps arguments between 0.5 and 1.5, where no function takes another way than usual.
_FLOAT_STEP = "{x} = fma({call}, 0.05f, 0.6f);"

_OPERATIONS = {
    "add": "V + key", "multiply": "V * key", "divide": "V / (key | 1)",
    "remainder": "V % (key | 1)", "divide by 7": "V / 7", "remainder by 7": "V % 7",
}  # fmt: skip
_INTEGERS = {"int": np.int32, "uint": np.uint32, "long": np.int64, "ulong": np.uint64}
_LEAST_NS = 0.02
"""Of an addition that is told from nothing."""
_INTEGER_SOURCE = """
kernel void run(global TYPE *out, const int rounds, const TYPE key) {
    TYPE a = (TYPE)get_global_id(0) + key, b = a + 1, c = a + 2, d = a + 3;
    BODY
    out[get_global_id(0)] = a + b + c + d;
}
"""

_INTEGER_STEP = "{x} = ({call}) ^ {x}; {x} += {next};"

_LOADS = {
    "one address": "in[k & mask]",
    "side by side": "in[l + (k & seven)]",
    "side by side, some lanes left out": "(j > k ? in[l + (k & seven)] : 0)",
    "side by side, index narrowed from 64 bits": "in[(int)(get_global_id(0) + (k & seven)) & mask]",
    "every other": "in[2 * l + (k & seven)]",
    "anywhere": "in[(j + k) & mask]",
    "anywhere, some lanes left out": "(j + l > k ? in[(j + k) & mask] : 0)",
    "anywhere, all lanes left out": "(j + k < 0 ? in[(j + k) & mask] : 0)",
    "a vector of four": "add4(((global const TYPE4 *)in)[(l + k) & 255])",
    # Elements of a work-item's own array that no compiler can hold in registers.
    "own array, element by data": "own[(j + k) & 15]",
    "own array, element by data, updated": "own[(j + k) & 15] += k",
}
_STORES = {"stored side by side": "l + (k & seven)", "stored every other": "2 * l + (k & seven)"}
_TYPES = ("int", "short", "uchar")
_ACCESS_ROUNDS = 400
_MASKS = (np.int32(1023), np.int32(7))
_OWN_ARRAY = "TYPE own[16]; for (int e = 0; e < 16; ++e) own[e] = in[j + e];"
_ACCESS_SOURCE = """
int add4(const TYPE4 v) { return v.x + v.y + v.z + v.w; }

kernel void run(global int *restrict out, const int rounds, global const TYPE *restrict in,
                global const int *restrict start, global TYPE *restrict stored,
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

_STRIDES = (1, 2, 3, 4, 6, 8, 9)
_FEW, _MANY = 4, 16
_STRIDE_SOURCE = """
kernel void run(global int *restrict out, const int rounds, global const TYPE *restrict in) {
    const size_t l = get_local_id(0);
    int sum = 0;
    BODY
    out[get_global_id(0)] = sum;
}
"""


def main() -> None:
    """Measure the tables that are asked for on all CPU devices, and write."""
    found = find_devices()
    for name in sys.argv[1:] or TABLES:
        for description, _ in found:
            session = open_session(*choose_device(description.id, found))
            keep(name, description.id, measure(session, TABLES[name](session)))
    write_text(FOLDER / "summary.md", *render())


def keep(name: str, device: str, rows: Rows) -> None:
    """Write what a device costs beside what is known of others."""
    path = FOLDER / f"{name}.json"
    kept = read_json(path) if path.exists() else {}
    kept[device] = {"machine": describe_machine(), "nanoseconds": rows}
    write_json(path, kept)


def measure(session: DeviceSession, cases: Iterable[Case]) -> Rows:
    """Give nanoseconds of an operation of one core per work-item."""
    rows: Rows = {}
    empties: dict[str, float] = {}
    for case in cases:
        try:
            if case.empty not in empties:
                empties[case.empty] = time_source(session, case.empty, case)
            taken_ns = time_source(session, case.source, case) - empties[case.empty]
        except (KernelcastError, cl.Error) as error:
            print(f"{case.row}, {case.column}: {str(error).splitlines()[0]}", flush=True)
            continue
        rows.setdefault(case.row, {})[case.column] = taken_ns / (case.rounds * case.repeats)
    return rows


def list_functions(session: DeviceSession) -> Iterator[Case]:
    """Give functions, in a loop and without one."""
    for shape in list_shapes(session):
        for name, call in (_FUNCTIONS | _OWN_VECTORS).items():
            source, empty = (write_chains(_FLOAT_STEP, one, shape) for one in (call, "V"))
            yield Case(
                row=name, column=shape, rounds=_ROUNDS[shape], repeats=len(_NEXT),
                source=_FLOAT_SOURCE.replace("BODY", source),
                empty=_FLOAT_SOURCE.replace("BODY", empty),
            )  # fmt: skip


def list_integers(session: DeviceSession) -> Iterator[Case]:
    """Give operations on integers by type, in a loop and without one."""
    for shape, (kind, number) in product(list_shapes(session), _INTEGERS.items()):
        frame = _INTEGER_SOURCE.replace("TYPE", kind)
        for name, operation in _OPERATIONS.items():
            source, empty = (write_chains(_INTEGER_STEP, one, shape) for one in (operation, "V"))
            yield Case(
                row=f"{kind}, {shape}", column=name, rounds=_ROUNDS[shape], repeats=len(_NEXT),
                source=frame.replace("BODY", source), empty=frame.replace("BODY", empty),
                arguments=(number(13),),
            )  # fmt: skip


def list_shapes(session: DeviceSession) -> tuple[str, ...]:
    """Give the forms of code that are timed."""
    # llvmpipe always makes vectors, and builds long straight code in minutes.
    return ("loop",) if session.description.platform == "rusticl" else ("loop", "straight")


def write_chains(step: str, operation: str, shape: str) -> str:
    """Write rounds of a step of four independent chains."""
    one = "\n".join(
        step.format(x=x, next=other, call=operation.replace("V", x)) for x, other in _NEXT.items()
    )
    if shape == "straight":
        return one * _ROUNDS[shape]
    return f"for (int k = 0; k < rounds; k++) {{ {one} }}"


def list_accesses(session: DeviceSession) -> Iterator[Case]:
    """Give accesses to data in the nearest cache, by pattern and type."""
    bodies = {name: f"sum += {text};" for name, text in _LOADS.items()}
    bodies |= {name: f"stored[{text}] = k;" for name, text in _STORES.items()}
    numbers = np.arange(1 << 12, dtype=np.int32) * 7919 % 997
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    filled = [cl.Buffer(session.context, flags, hostbuf=numbers) for _ in range(3)]
    for kind, (name, body) in product(_TYPES, bodies.items()):
        has_own = "own[" in body
        frame = _ACCESS_SOURCE.replace("OWN", _OWN_ARRAY * has_own)
        frame = frame.replace("LAST", "+ own[sum & 15]" * has_own)
        yield Case(
            row=name, column=kind, rounds=_ACCESS_ROUNDS, arguments=(*filled, *_MASKS),
            source=frame.replace("BODY", body).replace("TYPE", kind),
            empty=frame.replace("BODY", "").replace("TYPE", kind),
        )  # fmt: skip


def list_strides(session: DeviceSession) -> Iterator[Case]:
    """Give loads in straight code, by the numbers from a work-item's to the next one's."""
    numbers = np.zeros(1 << 12, dtype=np.int32)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    filled = cl.Buffer(session.context, flags, hostbuf=numbers)
    for kind, stride in product(_TYPES, _STRIDES):
        many, few = (
            "".join(f"sum += in[{stride} * l + {17 * place}];" for place in range(count))
            for count in (_MANY, _FEW)
        )
        frame = _STRIDE_SOURCE.replace("TYPE", kind)
        yield Case(
            row=f"{stride} apart", column=kind, rounds=_MANY - _FEW, arguments=(filled,),
            source=frame.replace("BODY", many), empty=frame.replace("BODY", few),
        )  # fmt: skip


def time_source(session: DeviceSession, source: str, case: Case) -> float:
    """Give the nanoseconds of a core that a work-item of a kernel takes."""
    kernel = cl.Program(session.context, source).build().run
    queue = cl.CommandQueue(session.context)
    out = cl.Buffer(session.context, cl.mem_flags.WRITE_ONLY, 8 * _ITEMS)
    kernel.set_args(out, np.int32(case.rounds), *case.arguments)
    # Launches of a few milliseconds: the clock of processor time ticks by microseconds.
    launches, least_s = 1, np.inf
    for _ in range(_REPEATS):
        started_s = time.process_time()
        for _ in range(launches):
            cl.enqueue_nd_range_kernel(queue, kernel, (_ITEMS,), (_LOCAL,))
        queue.finish()
        spent_s = (time.process_time() - started_s) / launches
        least_s = min(least_s, spent_s)
        launches = max(launches, min(50, int(5e-3 / max(spent_s, 1e-6))))
    return float(least_s) * 1e9 / _ITEMS


TABLES: dict[str, Callable[[DeviceSession], Iterator[Case]]] = {
    "functions": list_functions, "integers": list_integers, "accesses": list_accesses,
    "strides": list_strides,
}  # fmt: skip


def render() -> list[str]:
    """Write a table per kind and device: nanoseconds, and additions in brackets where told."""
    lines = ["# What operations cost", "", *(__doc__ or "").split("\n\n")[1].splitlines()]
    for name in TABLES:
        for device, one in read_json(FOLDER / f"{name}.json").items():
            rows: Rows = one["nanoseconds"]
            columns = list(dict.fromkeys(column for row in rows.values() for column in row))
            cells = (
                (what, *(_cell(row, column) for column in columns)) for what, row in rows.items()
            )
            title = f"## {name.capitalize()} on {device}"
            lines += ["", title, "", *make_table(["", *columns], cells)]
    return lines


def _cell(row: dict[str, float], column: str) -> str:
    if column not in row:
        return ""
    addition = row.get("add", 0.0)
    told = f"{row[column]:.3f}"
    return f"{told} ({row[column] / addition:.1f})" if addition > _LEAST_NS else told


if __name__ == "__main__":
    main()
