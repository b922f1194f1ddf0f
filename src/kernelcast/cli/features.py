"""``kernelcast features``."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from kernelcast.cli import options as option
from kernelcast.cli.terminal import Collected, ExitStatus, present, progress, show, wants_json
from kernelcast.expressions import Expr
from kernelcast.expressions.accesses import AddressPattern
from kernelcast.expressions.conditions import Condition
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.launches.devices import choose_devices
from kernelcast.launches.features import (
    DEFAULT_GROUPS,
    DeviceAnswer,
    DeviceFindings,
    FeatureSettings,
    KernelFeatures,
    read_on_devices,
    read_source_features,
)
from kernelcast.launches.settings import prefix
from kernelcast.records.arguments import Argument, BufferArgument, LocalArgument, SamplerArgument
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError, NoDeviceError
from kernelcast.records.feature_vector import FeatureGroup, FeatureVector, group_of
from kernelcast.records.operations import MemorySpace, NumberClass, OperationCounts, OperationKind
from kernelcast.records.plain import CONVERTER, pick, to_plain
from kernelcast.records.software_counters import SoftwareCounters
from kernelcast.reports.numbers import format_bytes, format_count, format_seconds, format_share
from kernelcast.reports.presenter import Field, Part, Section, Table, Value
from kernelcast.reports.source import annotate, explain, shorten, write_address, write_guard

_USUAL_GROUPS: Final = ", ".join(one for one in FeatureGroup if one in DEFAULT_GROUPS)
_K: Final = OperationKind
_WIDTHS: Final = {
    **{f"fp{bits}": (NumberClass.FLOAT, bits) for bits in (16, 32, 64)},
    **{f"int{bits}": (NumberClass.INTEGER, bits) for bits in (8, 16, 32, 64)},
}
_PLAIN_KINDS: Final = (_K.ADDRESS, _K.BRANCH, _K.JUMP, _K.BARRIER, _K.CALL, _K.COPY)
_QUALIFIERS: Final = re.compile(
    r"\b(?:const|restrict|volatile|__global|__constant|__local|__private|__generic)\b\s*"
)


@option.command(
    short="Show what is known of kernels: operations, addresses, features.",
    json="Print a JSON list, one object per problem, with everything that is known.",
)
def features(
    problem_files: tuple[Path, ...] = option.argument("P.yaml..."),
    shows_source: bool = option.given(
        "--source",
        "Show the source instead, with what each line executes and where it touches memory.",
    ),
    device_ids: tuple[str, ...] = option.device,
    without_devices: bool = option.given(
        "--no-device", "Ask no device: only what source and launch tell."
    ),
    settings: FeatureSettings = option.settings(
        groups=option.given(
            "--group",
            "Features of this group only; may be repeated. `sampled` times a few work-groups.  "
            f"[default: {_USUAL_GROUPS}]",
            show_default=False,
        ),
        seed=option.seed,
        timeout_s=option.timeout,
    ),
    parameters: Mapping[str, int | float] = option.parameters,
) -> ExitStatus:
    """Show what is known of the kernels of problem files, and their feature vectors.

        The source tells parameters, loops, operations, address expressions and how warps touch
    memory; gaps are named. Each device adds what its compiler says, and an instrumented copy of
    the kernel counts what a few work-groups execute, on copies of the buffers.
    """
    option.refuse({
        "--no-device and --device exclude each other; give one of them":
            without_devices and device_ids,
    })  # fmt: skip
    collected = Collected[KernelFeatures]()
    problems, answers = collected.read_problems(problem_files, parameters), collected.answers
    with progress() as report, collected.until_interrupted():
        devices: list[DeviceDescription] = []
        if not without_devices:
            report("looking for devices")
            try:
                devices = choose_devices(device_ids)
            except NoDeviceError as error:  # the source still tells most
                collected.refusals.append(("", error))
        for number, problem in enumerate(problems, start=1):
            tell = prefix(report, f"[{number}/{len(problems)}] {problem.name}: ")
            tell("analysing the source")
            try:
                answers.append(read_source_features(problem, settings))
                for device, found in read_on_devices(answers[-1], devices, report=tell):
                    told = (*answers[-1].devices, (device, found))
                    answers[-1] = replace(answers[-1], devices=told)
                    if isinstance(found, KernelcastError):
                        collected.failures.append((problem.name, found))
            except KernelcastError as error:
                collected.refusals.append((problem.name, error))
    if wants_json():
        present([features_to_json(answer) for answer in answers])
        return collected.conclude()
    for number, answer in enumerate(answers):
        if number:
            show("")
        show(*(show_source if shows_source else describe)(answer))
    return collected.conclude()


def describe(answer: KernelFeatures) -> Iterator[Part]:
    problem, facts, counters = answer.problem, answer.facts, answer.best_counters
    sizes = " x ".join(f"{size:,}" for size in problem.ndrange.global_size)
    title = f"{problem.name}: kernel {facts.kernel}, {problem.kernel.source_name}:{facts.line}; "
    title += f"{sizes} work-items"
    if problem.ndrange.local_size is not None:
        local = " x ".join(map(str, problem.ndrange.local_size))
        title += f" in {problem.ndrange.work_group_count:,} work-groups of {local}"
    yield Section(title=title, parts=[f"note: {note}" for note in answer.notes])
    how = "measured" if counters.is_measured else "from the source"
    divergence = Table.of(counters.warps, {
        "warp width": ("whole", "width"), "issued": "count",
        "executed per lane": ("count", lambda one: one.executed / one.width),
        "lanes in use": ("share", "lane_efficiency"), "branches": "count",
        "divergent": ("count", "divergent_branches"),
    })  # fmt: skip
    tables = {
        "Parameters": _list_parameters(answer),
        "Loops": _list_loops(answer),
        f"Operations per work-item, {how}": _list_operations(answer),
        "Memory accesses": list_accesses(answer),
        "Divergence": divergence,
    }
    for name, table in tables.items():
        if table.rows:
            yield Section(title=name, parts=[table])
    gaps = facts.told_gaps
    understood: list[Part] = [
        f"{format_share(facts.coverage)} of {len(facts.accesses)} accesses; "
        f"{len(gaps) or 'no'} gap{'' if len(gaps) == 1 else 's'}",
        *(f"line {gap.line}: {gap.reason}" if gap.line else gap.reason for gap in gaps),
        *dict.fromkeys(
            f"line {one.line}: {one.reason}"
            for one in facts.accesses
            if one.pattern is not AddressPattern.UNKNOWN and one.reason
        ),
    ]
    if not counters.is_exact:
        understood.append(
            "counts are estimates: what depends on data is guessed; on a device it is counted"
        )
    yield Section(title="Understood", parts=understood)
    # List the vector by group, one column per device; what is 0 everywhere in one line.
    found = {one.id: said for one, said in answer.devices if isinstance(said, DeviceFindings)}
    vectors = {key: one.vector for key, one in found.items() if one.vector is not None}
    vectors = vectors or {"without a device": answer.vector}
    values = [vector.as_dict() for vector in vectors.values()]
    rows: list[list[Value]] = []
    breaks = []
    for group in FeatureGroup:
        names = [name for name in answer.vector.schema.names if group_of(name) is group]
        there = [name for name in names if any(name in value for value in values)]
        shown = [name for name in there if any(value.get(name) for value in values)]
        breaks.append(len(rows))
        rows += [[name, *(value.get(name) for value in values)] for name in shown]
        if len(shown) < len(there):
            more = f"{group}: {len(there) - len(shown)} more are 0"
            rows.append([more, *[""] * len(values)])
    columns = dict.fromkeys(vectors, "value")
    yield Section(
        title="Features",
        parts=[Table(columns={"feature": "text", **columns}, rows=rows, breaks=breaks[1:])],
    )
    yield f"cost without a device: {_list_costs(answer.costs_s)}"
    for key, one in found.items():
        yield f"cost on {key}: {_list_costs(one.costs_s)}"
        yield from (f"{key}: {note}" for note in one.notes)


def _list_costs(costs_s: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {format_seconds(cost)}" for name, cost in costs_s.items())


def _list_parameters(answer: KernelFeatures) -> Table:
    arguments: list[Argument | None] = list(answer.problem.arguments)
    parameters = answer.facts.parameters
    arguments += [None] * (len(parameters) - len(arguments))
    rows = []
    for parameter, argument in zip(parameters, arguments, strict=False):
        if argument is None:
            launch = ""
        elif isinstance(argument, BufferArgument):
            launch = f"{argument.count:,} {argument.element}, {format_bytes(argument.bytes)}"
        elif isinstance(argument, LocalArgument):
            launch = format_bytes(argument.bytes)
        elif isinstance(argument, SamplerArgument):
            launch = f"{argument.filter}, {argument.address}"
        elif str(argument.element).startswith("uint8x") and "uchar" not in parameter.type_name:
            launch = f"structure, {format_bytes(argument.element.bytes)}"
        else:
            values = argument.values
            launch = ", ".join(f"{x:g}" if isinstance(x, float) else f"{x:,}" for x in values)
        qualifiers = {"const": parameter.is_const, "restrict": parameter.is_restrict,
                      "volatile": parameter.is_volatile}  # fmt: skip
        uses = {"read": parameter.is_read, "written": parameter.is_written}
        use = ", ".join(word for word, holds in uses.items() if holds) or "unused"
        rows.append((
            parameter.name, _QUALIFIERS.sub("", parameter.type_name).strip(),
            str(parameter.space) if parameter.is_pointer else "",
            " ".join(word for word, holds in qualifiers.items() if holds),
            use if parameter.is_pointer else "value", launch,
        ))  # fmt: skip
    rows += [
        (array.name, "array", "local", "", "", format_bytes(array.bytes))
        for array in answer.facts.local_arrays
    ]
    titles = ("parameter", "type", "space", "qualifiers", "use", "launch")
    return Table(columns=dict.fromkeys(titles, "text"), rows=rows)


def _list_loops(answer: KernelFeatures) -> Table:
    trips = {one.line: one for one in answer.best_counters.loops}
    is_measured = answer.best_counters.is_measured

    def of(what: str) -> tuple[str, Field]:
        return "count", lambda one: getattr(trips.get(one.line), what, "")

    return Table.of(dict.fromkeys(answer.facts.loops), {
        "line": ("number", "line"),
        "trip count": ("text", lambda one: (
            "depends on data" if one.trip_count is None else shorten(str(one.trip_count))
        )),
        "mean": of("mean"), "least": of("least"), "most": of("most"),
        "": ("text", lambda one: (
            "" if one.is_exact or is_measured else "may end early" if one.trip_count else "guessed"
        )),
    })  # fmt: skip


def _list_operations(answer: KernelFeatures) -> Table:
    counts = answer.best_counters.executed
    used = {(operation.number, operation.bits) for operation in counts.operations}
    widths = {title: width for title, width in _WIDTHS.items() if width in used}
    blanks = [""] * len(widths)
    rows: list[list[Value]] = []
    for kind in OperationKind:
        if kind not in _PLAIN_KINDS and counts.count(kind):
            times = [
                counts.count(kind, number=number, bits=bits, per_lane=True)
                for number, bits in widths.values()
            ]
            rows.append([str(kind), *(time or "" for time in times), ""])
    rows += [
        [str(kind), *blanks, counts.count(kind)] for kind in _PLAIN_KINDS if counts.count(kind)
    ]
    moved: dict[str, tuple[float, float]] = {}
    for operation, executed in counts.memory.items():
        name = f"{'store' if operation.is_store else 'load'} {operation.space}"
        before = moved.get(name, (0.0, 0.0))
        moved[name] = (before[0] + executed, before[1] + executed * operation.bytes)
    rows += [
        [name, *blanks, f"{format_count(executed)} ({format_count(total)} B)"]
        for name, (executed, total) in sorted(moved.items())
    ]
    columns = dict.fromkeys((*widths, "each"), "count")
    return Table(columns={"operation": "text", **columns}, rows=rows)


def list_accesses(answer: KernelFeatures) -> Table:
    """List where a kernel touches memory, the same place on two call paths twice."""
    requests = {pattern.site: pattern for pattern in answer.best_counters.patterns}
    rows: dict[tuple[Value, ...], None] = {}
    for access in answer.facts.accesses:
        request = requests.get(access.site)
        counted: tuple[Value, ...] = ("", "", "")
        if request is not None and request.space is MemorySpace.LOCAL:
            conflicts = format_count(request.bank_conflicts_per_request)
            counted = (request.requests, f"{conflicts} conflicts", "")
        elif request is not None:
            counted = (
                request.requests, request.sectors_per_request, request.ideal_sectors_per_request
            )  # fmt: skip
        rows[(
            str(access.line), access.text, str(access.kind), str(access.space),
            write_address(access, answer.facts), write_guard(access), str(access.pattern),
            *counted,
        )] = None  # fmt: skip
    return Table(
        columns={
            "line": "number", "source": "text", "does": "text", "space": "text", "address": "text",
            "if": "text", "pattern": "text", "requests\nper warp": "count",
            "sectors\n/request": "count", "ideal": "count",
        },
        rows=list(rows),
        stacks=(
            ("line",), ("does", "space"), ("address", "if", "pattern"),
            ("requests\nper warp", "sectors\n/request", "ideal"),
        ),
    )  # fmt: skip


def show_source(features: KernelFeatures) -> Iterator[Part]:
    """Put beside each line what it executes, and below it where each of its accesses goes."""
    lines, counters = annotate(features), features.best_counters
    # Of a long source, what is near the kernel's own lines.
    counted = [features.facts.line, *(one.number for one in lines if one.runs is not None)]
    near = {number for line in counted for number in range(line - 6, line + 3)}
    gap = ("", "", "", "", "", "...")
    rows: list[tuple[Value, ...]] = []
    hot, last = [], 0
    for number, line in enumerate(lines, start=1):
        if len(lines) > 90 and number not in near:
            continue
        if number > last + 1:
            rows.append(gap)
        last = number
        indent = " " * (len(line.code) - len(line.code.lstrip()))
        code = "\n".join([line.code, *(f"{indent}`- {one}" for one in line.accesses)])
        if line.share >= 0.1:
            hot.append(len(rows))
        runs, bar = "" if line.runs is None else line.runs, "#" * math.ceil(8 * line.share)
        rows.append((runs, bar, ", ".join(line.operations), line.memory, str(number), code))
    if last < len(lines):
        rows.append(gap)
    name = features.problem.kernel.source_name
    yield Table(
        columns={"runs": "count", "share": "text", "operations": "text", "memory": "text",
                 "line": "number", name: "code"},
        rows=rows, chosen=hot,
    )  # fmt: skip
    how = "counted by an instrumented run" if counters.is_measured else (
        "derived from the source" if counters.is_exact
        else "derived from the source, what depends on data is guessed"
    )  # fmt: skip
    yield (
        f"\nruns: executions per work-item, {how} ({counters.work_items:,} work-items of "
        f"{counters.work_groups} work-groups)\nshare: of all operations executed, whole with eight "
        "marks; operations and memory: of one execution, vectors by their lanes"
    )
    if legend := explain(access for line in lines for access in line.accesses):
        yield legend


CONVERTER.register_unstructure_hook(Expr, str)
CONVERTER.register_unstructure_hook(Condition, str)
_plain: Final = CONVERTER.unstructure


def features_to_json(features: KernelFeatures) -> dict[str, object]:
    facts, problem = features.facts, features.problem
    counts = features.counters.block_counts
    return {
        "problem": problem.name,
        "kernel": facts.kernel,
        "source": problem.kernel.source_name,
        "line": facts.line,
        **pick(problem.ndrange, "global_size", "local_size"),
        **_plain(pick(facts, "coverage", gaps="told_gaps")),
        "notes": list(features.notes),
        **_plain(pick(facts, "parameters", "local_arrays", "loops")),
        "accesses": [
            {
                **to_plain(access, omit=("block",)), "is_exact": access.is_exact,
                "loops": [loop.name for loop in access.loops],
            }
            for access in facts.accesses
        ],
        "counters": _describe_counters(features.counters, facts),
        "lines": [
            {
                "line": line.line, "executions": line.executions(counts),
                **_describe_counts(line.once),
            }
            for line in facts.lines
        ],
        "vector": _describe_vector(features.vector),
        "costs_seconds": features.costs_s,
        "devices": [_describe_device(answer, facts) for answer in features.devices],
    }  # fmt: skip


def _describe_counters(
    counters: SoftwareCounters | None, facts: KernelFacts
) -> dict[str, object] | None:
    if counters is None:
        return None
    return {
        **to_plain(counters, omit=("executed", "block_counts", "warps", "patterns")),
        **_describe_counts(counters.executed),
        "blocks": [
            {"function": block.function, "kind": block.kind, "line": block.line,
             "executions": executions}
            for block, executions in zip(facts.blocks, counters.block_counts, strict=True)
        ],
        "warps": [
            {**to_plain(warp), "lane_efficiency": warp.lane_efficiency} for warp in counters.warps
        ],
        "requests": [
            {**to_plain(pattern), "is_coalesced": pattern.is_coalesced}
            for pattern in counters.patterns
        ],
    }  # fmt: skip


def _describe_counts(counts: OperationCounts) -> dict[str, object]:
    return {
        "operations": [{**to_plain(one), "count": n} for one, n in counts.operations.items()],
        "memory": [{**to_plain(one), "count": n} for one, n in counts.memory.items()],
    }


def _describe_device(answer: DeviceAnswer, facts: KernelFacts) -> dict[str, object]:
    device, findings = answer
    about: dict[str, object] = {"device": device.name, "device_id": device.id}
    if isinstance(findings, KernelcastError):
        return {**about, "error_message": str(findings)}
    return {
        **about,
        "local_size": _plain(findings.ndrange.local_size),
        "compiler": findings.compiler and {
            name: to_plain(trait, omit=("low", "high", "origin"))
            for name, trait in findings.compiler.known.items()
        },
        "counters": _describe_counters(findings.counters, facts),
        "vector": None if findings.vector is None else _describe_vector(findings.vector),
        **pick(findings, "notes", costs_seconds="costs_s"),
    }  # fmt: skip


def _describe_vector(vector: FeatureVector) -> dict[str, object]:
    """Describe a vector; None stands for what is absent."""
    features = dict.fromkeys(vector.schema.names) | vector.as_dict()
    return {"schema": vector.schema.id, "features": features}
