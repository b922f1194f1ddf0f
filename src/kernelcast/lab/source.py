"""Reads a source that somebody typed: kernels, errors, and what each line executes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.kernel_facts import ParameterFacts
from kernelcast.features.analysis import analyse_parsed
from kernelcast.features.parsing import ParsedSource, list_kernels, parse_source
from kernelcast.launches.estimation import ReportProgress
from kernelcast.launches.features import KernelFeatures, read_source_features
from kernelcast.records.errors import KernelcastError
from kernelcast.records.problem import Problem
from kernelcast.reports.source.counts import summarise_memory, summarise_operations
from kernelcast.reports.source.expressions import explain, write_address, write_guard
from kernelcast.reports.source.lines import CountedLines, name_pattern
from kernelcast.workers.deaths import COUNTING

_ERROR = re.compile(r"<source>:(?P<line>\d+):(?P<column>\d+): (?P<message>.*)", re.DOTALL)
_TAB = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTask:
    """A source to read.

    Parameters
    ----------
    source : str
        OpenCL C.
    build_options : tuple of str
        Of the preprocessor.
    problem : Problem or None
        A launch of one of its kernels; its lines are counted then.
    """

    source: str
    build_options: tuple[str, ...] = ()
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceError:
    """What a compiler complains about.

    Parameters
    ----------
    line, column : int
        Where, from 1; 0 where nobody knows.
    message : str
        What is wrong.
    """

    line: int
    column: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKernel:
    """A kernel of the source.

    Parameters
    ----------
    name : str
        Its name.
    parameters : tuple of ParameterFacts
        What it takes.
    """

    name: str
    parameters: tuple[ParameterFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineAccess:
    """An access of a line in words.

    Parameters
    ----------
    kind : str
        ``load``, ``store`` or ``atomic``.
    address : str
        Where it goes, such as ``a[gid.x + 1]``.
    guard : str
        When it is executed; empty if always.
    pattern : str
        What is known of the address.
    requests : str
        How a warp touches memory; empty if nobody knows.
    """

    kind: str
    address: str
    guard: str
    pattern: str
    requests: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineReport:
    """A line of the source with what it executes.

    Parameters
    ----------
    number : int
        From 1.
    code : str
        Its text.
    runs : float or None
        Executions per work-item; None where it has no code of the kernel.
    share : float
        Of all operations executed, from 0 to 1.
    operations : tuple of str
        What one execution computes, such as ``2 fp32``.
    memory : str
        What one execution loads and stores.
    accesses : tuple of LineAccess
        Where that goes, each place once.
    """

    number: int
    code: str
    runs: float | None = None
    share: float = 0.0
    operations: tuple[str, ...] = ()
    memory: str = ""
    accesses: tuple[LineAccess, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """What a source tells.

    Parameters
    ----------
    kernels : tuple of SourceKernel
        In its order.
    errors : tuple of SourceError
        With errors nothing is counted.
    failure : str
        Why the launch could not be counted; empty if it was, or none was given.
    lines : tuple of LineReport
        The whole source; empty without a launch.
    legend : str
        What short names in addresses mean.
    is_exact : bool
        Whether no count is a guess about data.
    work_items, work_groups : int
        That the counts were made from.
    notes : tuple of str
        What was assumed, or could not be understood.
    """

    kernels: tuple[SourceKernel, ...]
    errors: tuple[SourceError, ...] = ()
    failure: str = ""
    lines: tuple[LineReport, ...] = ()
    legend: str = ""
    is_exact: bool = True
    work_items: int = 0
    work_groups: int = 0
    notes: tuple[str, ...] = ()


def read_lab_source(task: SourceTask, report: ReportProgress) -> SourceReport:
    """Read a source; runs in a child process.

    Raises
    ------
    InputError
        If the text can be no source.
    """
    report("reading the source")
    parsed = parse_source(task.source, task.build_options)
    kernels = tuple(_list_kernels(parsed))
    errors = tuple(map(_read_error, parsed.errors))
    if errors or task.problem is None:
        return SourceReport(kernels=kernels, errors=errors)
    report(COUNTING)
    try:
        features = read_source_features(task.problem)
    except KernelcastError as error:
        return SourceReport(kernels=kernels, failure=str(error))
    return _Annotator(features).report(kernels)


def _list_kernels(parsed: ParsedSource) -> Iterator[SourceKernel]:
    for name in list_kernels(parsed):
        try:
            facts = analyse_parsed(parsed, name).facts
        except KernelcastError:  # what is wrong with it is told where it is asked about
            continue
        yield SourceKernel(name=name, parameters=facts.parameters)


def _read_error(text: str) -> SourceError:
    found = _ERROR.fullmatch(text)
    if found is None:
        return SourceError(line=0, column=0, message=text.removeprefix("<source>: "))
    return SourceError(
        line=int(found["line"]), column=int(found["column"]), message=found["message"]
    )


class _Annotator:
    """Puts counts and addresses beside the lines of a source."""

    def __init__(self, features: KernelFeatures) -> None:
        self._features = features
        self._lines = CountedLines(features)

    def report(self, kernels: tuple[SourceKernel, ...]) -> SourceReport:
        features, counters = self._features, self._lines.counters
        source = features.problem.kernel.source.expandtabs(_TAB).rstrip()
        lines = tuple(
            self._report_line(number, code)
            for number, code in enumerate(source.split("\n"), start=1)
        )
        texts = (f"{one.address} {one.guard}" for line in lines for one in line.accesses)
        gaps = tuple(
            f"line {one.line}: {one.reason}" if one.line else one.reason
            for one in features.facts.gaps
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

    def _report_line(self, number: int, code: str) -> LineReport:
        facts = self._lines.facts.get(number)
        accesses = tuple(dict.fromkeys(map(self._describe, self._lines.list_accesses(number))))
        if facts is None:
            return LineReport(number=number, code=code, accesses=accesses)
        return LineReport(
            number=number,
            code=code,
            runs=self._lines.count_runs(number),
            share=self._lines.share(number) or 0.0,
            operations=tuple(text for _, text in summarise_operations(facts.once)),
            memory=summarise_memory(facts.once),
            accesses=accesses,
        )

    def _describe(self, access: MemoryAccess) -> LineAccess:
        return LineAccess(
            kind=str(access.kind),
            address=write_address(access, self._features.facts),
            guard=write_guard(access),
            pattern=name_pattern(access),
            requests=self._lines.describe_requests(access),
        )
