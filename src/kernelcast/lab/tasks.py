"""What the Lab asks of child processes: a source that is typed in, and times over local sizes."""

import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import product

from kernelcast.expressions.kernel_facts import ParameterFacts
from kernelcast.features.analysis import compile_source, read_errors, read_facts
from kernelcast.launches.estimation import ReportProgress
from kernelcast.launches.features import read_source_features
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.estimating import estimate_analytically
from kernelcast.launches.modelling.gpu_estimates import configure
from kernelcast.launches.modelling.launches import choose_local_size, model_kernel
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import CompileError, InputError, KernelcastError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.reports.source import AnnotatedLine, annotate, explain
from kernelcast.workers import COUNTING, Task

_ERROR = re.compile(r"<source>:(?P<line>\d+):(?P<column>\d+): (?P<message>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    kernels: Mapping[str, tuple[ParameterFacts, ...]]
    errors: tuple[str, ...] = ()
    """What is wrong, each with its line and a mark below the place; nothing is counted."""
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


def read_lab_source(
    asked: tuple[str, tuple[str, ...], Problem | None], report: ReportProgress
) -> SourceReport:
    """Read a source with its build options and, if it is launched, the problem."""
    source, build_options, problem = asked
    report("reading the source")
    try:
        compiled = compile_source(source, build_options, "<source>")
    except CompileError as error:
        return SourceReport(kernels={}, errors=_quote(source, read_errors(error)))
    kernels = {}
    for one in compiled.kernels:
        kernel = Kernel(name=one.name, source=source, build_options=build_options)
        # What is wrong with it is told where it is asked about.
        with suppress(KernelcastError):
            kernels[one.name] = read_facts(kernel).parameters
    reasons = [one.reason for one in compiled.gaps if "error in the source" in one.reason]
    errors = _quote(source, reasons)
    if errors or problem is None:
        return SourceReport(kernels=kernels, errors=errors)
    report(COUNTING)
    try:
        features = read_source_features(problem)
    except KernelcastError as error:
        return SourceReport(kernels=kernels, failure=str(error))
    lines, counters = annotate(features), features.best_counters
    gaps = tuple(
        f"line {one.line}: {one.reason}" if one.line else one.reason
        for one in features.facts.told_gaps
    )
    return SourceReport(
        kernels=kernels,
        lines=lines,
        legend=explain(access for line in lines for access in line.accesses),
        is_exact=counters.is_exact,
        work_items=counters.work_items,
        work_groups=counters.work_groups,
        notes=(*features.notes, *gaps),
    )


def _quote(source: str, errors: Iterable[str]) -> tuple[str, ...]:
    """Write errors of a source with the line that each is about and a mark below the place."""
    lines, told = dict(enumerate(source.split("\n"), start=1)), []
    for error in errors:
        found = _ERROR.search(error)
        if found is None:
            told.append(error.removeprefix("<source>: "))
            continue
        line, column, message = int(found["line"]), int(found["column"]), found["message"]
        text = lines.get(line, "").replace("\t", " ")
        told.append(f"line {line}: {message}\n  {text}\n  {' ' * (column - 1)}^")
    return tuple(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What a launch takes with a local size or at a size; no time where there is a reason."""

    value: tuple[int, ...]
    where: str
    """The machine or device that says so."""
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    detail: str = ""
    """The limiter, or the tier."""
    reason: str = ""
    estimate: AnalyticEstimate | None = None
    """The model's whole answer, where one was asked."""

    @property
    def text(self) -> str:
        return " x ".join(map(str, self.value))


MODEL_LOCAL_SIZES = Task(entry=f"{__name__}:model_local_sizes", returns=tuple[Timed, ...])


def model_local_sizes(
    asked: tuple[Problem, str, tuple[tuple[int, ...], ...] | None], report: ReportProgress
) -> tuple[Timed, ...]:
    """Ask the model of a machine for local sizes: none for the launch's own, None for all that are
    worth it."""
    problem, name, wanted = asked
    machine = find_machine(name)
    source = model_kernel(problem)
    if wanted is None:
        told = machine.max_work_group_size
        most = 1024 if told is None else min(1024, told.value)
        wanted = tuple(list_local_sizes(problem.ndrange, most))
    elif not wanted:
        own, _ = choose_local_size(problem.ndrange, source.facts)
        wanted = (own.known_local_size,)
    answers = []
    for number, one in enumerate(wanted, start=1):
        report(f"local size {number} of {len(wanted)}")
        try:
            if machine.kind is DeviceKind.GPU:
                estimate = configure(source, machine, one).estimate
            else:
                estimate = estimate_analytically(source.launch(one), machine)
        except InputError as error:
            answers.append(Timed(value=one, where=name, reason=str(error)))
            continue
        answers.append(Timed(
            value=one, where=name, seconds=estimate.seconds, detail=estimate.limiter,
            estimate=estimate,
        ))  # fmt: skip
    return tuple(answers)


def list_local_sizes(ndrange: NDRange, most: int) -> list[tuple[int, ...]]:
    """List local sizes worth trying: sides that divide the global size, few of each dimension."""
    axes = []
    for size in ndrange.global_size:
        limit = min(size, most)
        sides = [1 << power for power in range(limit.bit_length()) if size % (1 << power) == 0]
        if len(sides) <= 4 and limit > 1:  # hardly any power of two divides it
            sides = [one for one in range(1, limit + 1) if size % one == 0]
            if len(sides) > 9:
                sides = sorted({sides[round((len(sides) - 1) * place / 8)] for place in range(9)})
        axes.append(sides)
    found = {one for one in product(*axes) if math.prod(one) <= most}
    # The largest 80 work-groups are those that matter; a flat one stays in any case.
    kept = sorted(found, key=lambda one: (-math.prod(one), one))[:80]
    own = ndrange.local_size
    return sorted({*kept, *([own] if own is not None else [])})
