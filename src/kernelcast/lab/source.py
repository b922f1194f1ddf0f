"""Reads a source that somebody typed: kernels, errors, what each line executes, what fits it."""

import re
from contextlib import suppress
from dataclasses import dataclass

from kernelcast.expressions.kernel_facts import ParameterFacts
from kernelcast.features.analysis import read_facts
from kernelcast.features.ir.reading import compile_source, read_errors
from kernelcast.launches.estimation import ReportProgress
from kernelcast.launches.features import KernelFeatures, read_source_features
from kernelcast.records.errors import CompileError, KernelcastError, KernelNotFoundError
from kernelcast.records.kernel import Kernel
from kernelcast.records.problem import Problem
from kernelcast.reports.source import AnnotatedLine, annotate, explain
from kernelcast.sampling.signature import Parameter, check_arguments
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


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
# With directives other than these a plain look at the text does not tell what is compiled.
_DIRECTIVE = re.compile(r"^\s*#\s*(?!pragma\s+(?:OPENCL|unroll)\b)", re.MULTILINE)
_KERNEL = re.compile(
    r"\b(?:__)?kernel\b\s*(?:__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)\s*)*"
    r"void\s+(?:__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)\s*)*(?P<name>\w+)\s*"
    r"\((?P<parameters>[^()]*)\)\s*\{"
)
_SPACE = re.compile(r"\b(?:__)?(global|constant|local|private)\b")
_QUALIFIER = re.compile(r"\b(?:(?:__)?(?:global|constant|local|private|restrict)|const|volatile)\b")
_VALUE = re.compile(
    r"(?:u?(?:char|short|int|long)|float|double|half)(?:2|3|4|8|16)?|unsigned(?: int)?|size_t"
)


def check_signature(problem: Problem) -> None:
    """Refuse a kernel that is not in its source, or arguments that do not fit it."""
    kernel = problem.kernel
    text = _COMMENT.sub(" ", kernel.source)
    options = " ".join(kernel.build_options)
    if _DIRECTIVE.search(text) or "-D" in options or "CLC++" in options:
        return
    found = {one["name"]: one["parameters"] for one in _KERNEL.finditer(text)}
    if kernel.name not in found:
        if found and re.search(rf"\b{re.escape(kernel.name)}\b", text) is None:
            have = ", ".join(sorted(found))
            msg = f"kernel {kernel.name!r} is not in {kernel.source_name}; its kernels are: {have}"
            raise KernelNotFoundError(msg)
        return
    listed = [one.strip() for one in found[kernel.name].split(",")]
    parts = [] if listed in ([""], ["void"]) else listed
    check_arguments(
        kernel.name,
        [_read_parameter(number, part) for number, part in enumerate(parts)],
        problem.arguments,
    )


def _read_parameter(index: int, text: str) -> Parameter:
    """Read a parameter, as far as its text tells what it is."""
    space = _SPACE.search(text)
    bare = " ".join(_QUALIFIER.sub(" ", text.replace("*", " * ")).split())
    kind, _, name = bare.rpartition(" ")
    stars = kind.count("*")
    value = kind.replace("*", "").strip()
    return Parameter(
        index=index,
        name=name,
        type_name=f"{value}*" if stars else value,
        address_space=space[1] if space and stars else "private",
        is_const="const" in text.split(),
        is_known=_VALUE.fullmatch(value) is not None and stars <= 1 and "[" not in text,
    )
