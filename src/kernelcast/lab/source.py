"""Reads a source that somebody typed: kernels, errors, what each line executes, what fits it."""

import re
from contextlib import suppress
from dataclasses import dataclass

from kernelcast.expressions.kernel_facts import ParameterFacts
from kernelcast.features.analysis import read_facts
from kernelcast.features.ir.reading import compile_source, read_errors
from kernelcast.launches.estimation import ReportProgress
from kernelcast.launches.features import KernelFeatures, read_source_features
from kernelcast.records.errors import CompileError, KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.records.problem import Problem
from kernelcast.reports.source import AnnotatedLine, annotate, explain
from kernelcast.workers import COUNTING, Task

_ERROR = re.compile(r"<source>:(?P<line>\d+):(?P<column>\d+): (?P<message>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTask:
    """A source to read."""

    source: str
    build_options: tuple[str, ...] = ()
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceError:
    """What a compiler complains about."""

    line: int
    column: int
    """Where, from 1; 0 where nobody knows."""
    message: str
    """What is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKernel:
    """A kernel of the source."""

    name: str
    parameters: tuple[ParameterFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """What a source tells."""

    kernels: tuple[SourceKernel, ...]
    """In its order."""
    errors: tuple[SourceError, ...] = ()
    """With errors nothing is counted."""
    failure: str = ""
    """Why the launch could not be counted; empty if it was, or none was given."""
    lines: tuple[AnnotatedLine, ...] = ()
    """The whole source; empty without a launch."""
    legend: str = ""
    """What short names in addresses mean."""
    is_exact: bool = True
    """Whether no count is a guess about data."""
    work_items: int = 0
    work_groups: int = 0
    """That the counts were made from."""
    notes: tuple[str, ...] = ()
    """What was assumed, or could not be understood."""


READ_SOURCE = Task(entry=f"{__name__}:read_lab_source", returns=SourceReport)


def read_lab_source(task: SourceTask, report: ReportProgress) -> SourceReport:
    """Read a source; runs in a child process."""
    report("reading the source")
    try:
        compiled = compile_source(task.source, task.build_options, "<source>")
    except CompileError as error:
        return SourceReport(kernels=(), errors=tuple(map(_read_error, read_errors(error))))
    found = []
    for name in compiled.kernels:
        kernel = Kernel(name=name, source=task.source, build_options=task.build_options)
        # What is wrong with it is told where it is asked about.
        with suppress(KernelcastError):
            found.append(SourceKernel(name=name, parameters=read_facts(kernel).parameters))
    kernels = tuple(found)
    errors = tuple(map(_read_error, compiled.errors))
    if errors or task.problem is None:
        return SourceReport(kernels=kernels, errors=errors)
    report(COUNTING)
    try:
        features = read_source_features(task.problem)
    except KernelcastError as error:
        return SourceReport(kernels=kernels, failure=str(error))
    return _annotate(features, kernels)


def _read_error(text: str) -> SourceError:
    found = _ERROR.fullmatch(text)
    if found is None:
        return SourceError(line=0, column=0, message=text.removeprefix("<source>: "))
    return SourceError(
        line=int(found["line"]), column=int(found["column"]), message=found["message"]
    )


def _annotate(features: KernelFeatures, kernels: tuple[SourceKernel, ...]) -> SourceReport:
    lines, counters = annotate(features), features.best_counters
    texts = (f"{one.address} {one.guard}" for line in lines for one in line.accesses)
    gaps = tuple(
        f"line {one.line}: {one.reason}" if one.line else one.reason
        for one in features.facts.told_gaps
    )
    return SourceReport(
        kernels=kernels,
        lines=lines,
        legend=explain(texts),
        is_exact=counters.is_exact,
        work_items=counters.work_items,
        work_groups=counters.work_groups,
        notes=(*features.notes, *gaps),
    )
