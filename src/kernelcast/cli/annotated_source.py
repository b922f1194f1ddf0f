"""The source of a kernel with what each line executes beside it."""

import math
from collections.abc import Iterator

from kernelcast.launches.features import KernelFeatures
from kernelcast.reports.presenter import Part, Table, Value
from kernelcast.reports.source import annotate, explain


def show_source(features: KernelFeatures) -> Iterator[Part]:
    """Put beside each line what it executes, and below it where each of its accesses goes."""
    lines, counters = annotate(features), features.best_counters
    counted = [one.number for one in lines if one.runs is not None]
    rows: list[tuple[Value, ...]] = []
    hot = []
    for number in _list_shown(len(lines), [features.facts.line, *counted]):
        if number is None:
            rows.append(("", "", "", "", "", "..."))
            continue
        line = lines[number - 1]
        indent = " " * (len(line.code) - len(line.code.lstrip()))
        code = "\n".join([line.code, *(f"{indent}`- {one.text}" for one in line.accesses)])
        if line.share >= 0.1:
            hot.append(len(rows))
        runs, bar = "" if line.runs is None else line.runs, "#" * math.ceil(8 * line.share)
        rows.append((runs, bar, ", ".join(line.operations), line.memory, str(number), code))
    name = features.problem.kernel.source_name
    yield Table(
        columns={"runs": "count", "share": "text", "operations": "text", "memory": "text",
                 "line": "number", name: "text"},
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
    if legend := explain(access.text for line in lines for access in line.accesses):
        yield legend


def _list_shown(count: int, counted: list[int]) -> Iterator[int | None]:
    """List the lines worth showing of so many; None stands for those left out."""
    if count <= 90:
        yield from range(1, count + 1)
        return
    wanted = {near for line in counted for near in range(line - 6, line + 3)}
    last = 0
    for line in sorted(one for one in wanted if 1 <= one <= count):
        if line != last + 1:
            yield None
        yield line
        last = line
    if last < count:
        yield None
