"""``kernelcast model cpu``: C loops by ECM and Roofline, OpenCL kernels by the analytic model."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Final

import click

from kernelcast.analytic.cpu.ecm import Unit, read_unit
from kernelcast.analytic.cpu.in_core import InCoreProvider, InCoreTerms, OsacaProvider
from kernelcast.analytic.cpu.layer_conditions import Transition
from kernelcast.analytic.cpu.machine import CpuMachine, read_machine
from kernelcast.cli import options as option
from kernelcast.cli.terminal import present, progress
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.launches.machines import find_machine, list_machines
from kernelcast.launches.modelling.compiled_loops import (
    CompilerChoice,
    choose_architecture,
    compile_loop,
)
from kernelcast.launches.modelling.cpu_loops import (
    GivenTerms,
    LoopModel,
    LoopPrediction,
    estimate_to_json,
    prediction_to_json,
    read_loop_file,
)
from kernelcast.launches.modelling.estimating import estimate_analytically
from kernelcast.launches.modelling.sources import read_launch_source, record_accesses
from kernelcast.records.arithmetic import ArithmeticProblem, evaluate
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.reports.charts import Axis, Chart, Figure, make_series
from kernelcast.reports.numbers import format_seconds, format_share
from kernelcast.reports.presenter import Part, Section, Table, Value
from kernelcast.sampling.loop_benchmark import (
    FLAGS,
    LoopMeasurement,
    LoopToRun,
    measure_loop,
)

_PREFIXES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Values of constants, one of them perhaps swept."""

    fixed: Mapping[str, int]
    """Constants with one value."""
    name: str = ""
    """The constant that is swept; empty for none."""
    values: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CpuOptions:
    """Options of ``kernelcast model cpu``."""

    file: Path = option.argument("FILE")
    machine_name: str | None = option.given(
        "--machine NAME",
        "Machine description: a shipped one (ivy-bridge-ep), one calibrated here, or a file.  "
        "[default: the only one calibrated here]",
    )
    defines: tuple[tuple[str, str], ...] = option.given(
        "-D",
        "Value of a constant of the loop, or of a parameter of the problem file; a range "
        "FIRST:LAST:STEP of one of them is a sweep. May be repeated.",
        metavar="NAME VALUE", nargs=2, multiple=True, type=str,
    )  # fmt: skip
    predictor: str = option.given(
        "--cache-predictor",
        "Cache traffic from layer conditions, or from a simulation.",
        type=click.Choice(("lc", "sim")), default="lc",
    )  # fmt: skip
    cores: int = option.given(
        "--cores", "Busy cores; they share what they share.", type=option.COUNT, default=1
    )
    unit_name: str = option.given(
        "--unit UNIT",
        "cy/CL (core cycles per cache line of work), cy/It, It/s, FLOP/s or s.",
        default="cy/CL",
    )
    taken: float | None = option.given(
        "--taken SHARE",
        "Share of iterations in which conditions on data hold, at random.  [default: unknown; both "
        "sides are executed under a mask]",
        type=click.FloatRange(min=0, max=1),
    )
    given_terms: str | None = option.given(
        "--in-core T_OL,T_NOL",
        "Cycles per cache line of work in the core, overlapping and not, where you know them.",
    )
    core: str = option.given(
        "--core",
        "Time in the core from OSACA of the loop as the C compiler compiles it here, or from the "
        "machine's instruction table; auto takes OSACA where it can, and says why where it cannot.",
        type=click.Choice(("auto", "osaca", "table")), default="auto",
    )  # fmt: skip
    assembly_file: Path | None = option.given(
        "--assembly FILE",
        "Body of the compiled innermost loop for OSACA, instead of compiling it here; needs "
        "--per-pass.",
    )
    architecture: str = option.given(
        "--architecture NAME",
        "OSACA's name of the processor: IVB, SKX, ICL, ZEN4.  [default: by the machine's name, or "
        "by /proc/cpuinfo where it is this machine]",
        default="",
    )
    flags: str = option.given(
        "--flags FLAGS",
        "Of the C compiler, for OSACA and --measure.  [default: -O3, for the machine's processor]",
        default="",
    )
    iterations_per_pass: float | None = option.given(
        "--per-pass N",
        "Iterations of the source's loop that one pass of the assembly executes.",
        type=option.POSITIVE,
    )
    overlapping: tuple[str, ...] = option.given(
        "--overlap LEVEL",
        "A level whose transfers overlap with all else (L2, L3, MEM); may be repeated.",
    )
    solved: str | None = option.given(
        "--transitions NAME",
        "Solve layer conditions for this constant.  [default: the one swept, else the last -D]",
    )
    measures: bool = option.given(
        "--measure", "Compile and run the loop here as well, and show it beside the prediction."
    )
    compiler: str = option.given(
        "--compiler CC",
        "C compiler, for OSACA and --measure.  [default: $CC, cc, gcc, clang]",
        default="",
    )
    device_id: str | None = option.given(
        "--device ID",
        "Record on this OpenCL device where accesses of the problem go that depend on data.",
    )

    def __post_init__(self) -> None:
        if self.is_problem and (
            self.measures
            or self.given_terms
            or self.assembly_file
            or self.solved
            or self.taken is not None
        ):
            msg = (
                "--measure, --in-core, --assembly, --taken and --transitions are for C loops; "
                "`kernelcast estimate --measure` measures OpenCL kernels"
            )
            raise click.UsageError(msg)
        ways = (self.assembly_file is not None, bool(self.given_terms), self.core == "osaca")
        is_half = (self.assembly_file is None) != (self.iterations_per_pass is None)
        if is_half or sum(ways) > 1:
            msg = (
                "--assembly and --per-pass belong together, and instead of --in-core and "
                "--core osaca"
            )
            raise click.UsageError(msg)
        if self.device_id is not None and not self.is_problem:
            msg = "--device records addresses of OpenCL problems (.yaml), not of C loops"
            raise click.UsageError(msg)
        if self.measures and self.cores > 1:
            msg = "--measure runs the loop on one core; leave --cores out"
            raise click.UsageError(msg)
        _ = self.unit, self.sizes  # wrong ones are refused now

    @property
    def is_problem(self) -> bool:
        """Whether the file is an OpenCL problem, by the end of its name."""
        return self.file.suffix.lower() in {".yaml", ".yml"}

    @cached_property
    def unit(self) -> Unit:
        """The unit of results."""
        return read_unit(self.unit_name)

    @cached_property
    def sizes(self) -> Sizes:
        """The constants."""
        fixed: dict[str, int] = {}
        swept: dict[str, tuple[int, ...]] = {}
        for name, text in self.defines:
            if ":" in text:
                given_as = f"-D {name} {text!r}"
                swept[name] = option.read_range(text, given_as=given_as, example="100:2000:20")
                continue
            try:
                value = evaluate(text)
            except ArithmeticProblem as problem:
                msg = f"-D {name} {text!r}: expected a whole number or FIRST:LAST:STEP ({problem})"
                raise InputError(msg) from problem
            if int(value) != value or value < 1:
                msg = f"-D {name} {text!r}: expected a whole number of at least 1"
                raise InputError(msg)
            fixed[name] = int(value)
        if len(swept) > 1:
            msg = f"-D {', '.join(swept)}: one constant may have a range, the others one value"
            raise InputError(msg)
        for name, values in swept.items():
            return Sizes(fixed=fixed, name=name, values=values)
        return Sizes(fixed=fixed)

    def find_description(self) -> MachineDescription:
        """Find the machine: the one asked for, or the only CPU that was calibrated here."""
        if self.machine_name is not None:
            return find_machine(self.machine_name)
        own = [machine for machine in list_machines() if not machine.is_shipped]
        if len(own) == 1:
            return find_machine(own[0].path)
        names = ", ".join(one.name for one in own) or "none; `kernelcast calibrate` makes one"
        msg = f"which machine? Give one with --machine; calibrated here: {names}"
        raise InputError(msg)

    def read_model(self) -> tuple[str, LoopModel]:
        """Read the loop and the machine."""
        source, nest = read_loop_file(self.file, self.sizes.fixed)
        nest = replace(nest, taken=self.taken)
        machine = read_machine(self.find_description(), overlapping=self.overlapping)
        provider, notes = self._choose_in_core(source, nest, machine)
        nest = replace(nest, notes=(*nest.notes, *notes))
        return source, LoopModel(
            nest=nest, machine=machine, predictor=self.predictor, in_core=provider
        )

    def _choose_in_core(
        self, source: str, nest: LoopNest, machine: CpuMachine
    ) -> tuple[InCoreProvider | None, tuple[str, ...]]:
        """Choose what tells the time in the core, None for the instruction table; with notes."""
        if self.assembly_file is not None:
            try:
                assembly = self.assembly_file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                msg = f"{self.assembly_file}: the assembly cannot be read: {error}"
                raise InputError(msg) from error
            name = self.architecture or choose_architecture(machine)[0].name
            iterations = self.iterations_per_pass or 0.0
            return OsacaProvider(assembly, architecture=name, iterations=iterations), ()
        if self.given_terms is not None:
            parts = self.given_terms.replace("|", ",").split(",")
            try:
                overlapping, loads = (float(part) for part in parts if part.strip())
            except ValueError as error:
                msg = (
                    f"--in-core {self.given_terms!r}: expected two numbers of cycles per cache "
                    "line, T_OL,T_nOL, such as 52,54"
                )
                raise InputError(msg) from error
            terms = InCoreTerms(overlapping=overlapping, non_overlapping=loads, provider="given")
            return GivenTerms(terms=terms), ()
        if self.core == "table":
            return None, ()
        choice = CompilerChoice(
            compiler=self.compiler, flags=shlex.split(self.flags), architecture=self.architecture
        )
        constants = dict(self.sizes.fixed)
        if self.sizes.name:
            constants[self.sizes.name] = max(self.sizes.values)
        is_wanted = self.core == "osaca" or self.architecture or self.flags
        try:
            architecture, _ = choose_architecture(machine, self.architecture)
            if architecture.stands_for and machine.has_measured_instructions and not is_wanted:
                note = f"OSACA has no data of {architecture.stands_for}"
                return None, (f"in the core: the instructions as measured here, for {note}",)
            provider = compile_loop(source, nest, machine, constants, choice)
        except InputError as error:
            if is_wanted:
                raise
            return None, (f"in the core: instruction table, not OSACA: {error}",)
        if provider.loop.calls and not is_wanted:
            called = ", ".join(provider.loop.calls)
            return None, (f"in the core: instruction table, for OSACA does not know {called}",)
        return provider, ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """One size of a loop: what is predicted, and measured if it was run."""

    loop: LoopPrediction
    measured: LoopMeasurement | None

    @property
    def measured_cycles(self) -> float:
        """Core cycles per cache line of work, at the machine description's clock."""
        assert self.measured is not None
        return self.loop.work.cycles(self.measured.shortest_s)

    @property
    def error(self) -> float:
        """Of the prediction, relative to the measurement."""
        return self.loop.cycles / self.measured_cycles - 1


@option.command(
    short="ECM, Roofline and layer conditions of a C loop, or time of an OpenCL kernel.",
    json="Print JSON; cycles are per cache line.",
    plot="FILE: Draw the sweep, as .png or .svg.",
)
def cpu(options: CpuOptions) -> None:
    """Model a loop on a CPU: cache traffic, ECM, Roofline, saturation, where to block.

    FILE is a C99 listing (declarations and one loop nest), or the problem file (.yaml) of an
    OpenCL kernel. Nothing is run without --measure or --device; a loop may be compiled.
    """
    content, parts, figure = (_model_problem if options.is_problem else _model_loop)(options)
    present(content, *parts, figure=figure)


def _model_loop(options: CpuOptions) -> tuple[object, list[Part], Figure]:
    source, model = options.read_model()
    sizes, unit = options.sizes, options.unit
    rows: list[_Size] = []
    with progress() as report:
        for value in sizes.values or (None,):
            constants = dict(sizes.fixed) | ({} if value is None else {sizes.name: value})
            swept = "the loop" if value is None else f"{sizes.name}={value}"
            report(f"predicting {swept}")
            loop = model.predict(constants, options.cores)
            measured = None
            if options.measures:
                report(f"measuring {swept}")
                values = bind_names(loop.constants)
                array_bytes = sum(
                    array.element_bytes
                    * prod(int(size.evaluate(values)) for size in array.dimensions)
                    for array in model.nest.arrays
                )
                measured = measure_loop(LoopToRun(
                    source=source, constants=loop.constants, array_bytes=array_bytes,
                    compiler=options.compiler, flags=options.flags.split() or FLAGS,
                ))  # fmt: skip
            rows.append(_Size(loop=loop, measured=measured))
    transitions, solved = _solve(options, model)
    predictor = "layer conditions" if options.predictor == "lc" else "cache simulation"
    cores = f"{options.cores} cores" if options.cores > 1 else "1 core"
    title = f"{model.nest.name} on {model.machine.name}, {cores}, {predictor}"
    content: dict[str, object] = {
        "kernel": model.nest.name,
        "machine": model.machine.id,
        "sizes": [_size_to_json(row, unit) for row in rows],
        "transitions": [asdict(transition) for transition in transitions],
    }
    notes = [*dict.fromkeys(note for row in rows for note in row.loop.notes)]
    parts: list[Part]
    if sizes.name:
        parts = [title, _list_sweep(sizes.name, rows, unit), *solved]
    else:
        loop = rows[0].loop
        scaling = model.scale(loop.constants)
        advice = model.advise(loop.constants, options.cores)
        content["scaling"] = [asdict(one) for one in scaling]
        content["advice"] = [asdict(one) for one in advice]
        parts = [title, *_describe_size(rows[0], unit)]
        if model.machine.cores > 1:
            parts.append(Table(
                columns={"cores": "whole", f"ECM ({unit})": "number", "memory": "text"},
                rows=[
                    (one.cores, format_value(loop.work.tell(one.cycles, unit), unit),
                     "saturated" if one.is_saturated else "")
                    for one in scaling[:16]
                ],
            ))  # fmt: skip
        parts += [*solved, *(f"advice: {one}" for one in advice)]
        notes += model.conflicts(loop.constants)
    parts += [f"note: {note}" for note in notes]
    return content, parts, _chart_sweep(title, sizes.name, rows, unit)


def _solve(options: CpuOptions, model: LoopModel) -> tuple[tuple[Transition, ...], list[Part]]:
    """Solve layer conditions for the constant asked for, else for the one that varies."""
    sizes = options.sizes
    size = options.solved or sizes.name or next(reversed(list(sizes.fixed)), "")
    if not size:
        return (), []
    try:
        transitions = model.transitions(size, sizes.fixed, options.cores)
    except InputError as error:
        if options.solved:
            raise
        return (), [f"note: no transitions of {size}: {error}"]
    if not transitions:
        return (), []
    table = Table(
        columns={
            "level": "text", "condition": "text", f"largest {size}": "number", "hits": "number",
            "misses": "number", "evicts": "number", "reuse held (bytes)": "text",
        },
        rows=[
            (
                transition.level, transition.condition,
                "" if transition.largest is None else str(transition.largest),
                f"{transition.hits:g}", f"{transition.misses:g}", f"{transition.evicts:g}",
                "all arrays" if transition.tail_bytes == "oo" else transition.tail_bytes,
            )
            for transition in transitions
        ],
    )  # fmt: skip
    return transitions, [Section(title=f"Layer conditions, solved for {size}", parts=[table])]


def _size_to_json(row: _Size, unit: Unit) -> dict[str, object]:
    content = prediction_to_json(row.loop, unit)
    if row.measured is not None:
        content["measured"] = {
            "wall_s": row.measured.seconds,
            "cpu_s": row.measured.cpu_seconds,
            "shortest_s": row.measured.shortest_s,
            "compiler": row.measured.compiler,
            "value": row.loop.work.tell(row.measured_cycles, unit),
            "error": row.error,
        }
    return content


def _describe_size(row: _Size, unit: Unit) -> Iterator[Part]:
    """Describe one size: ECM, traffic, Roofline."""
    loop, measured = row.loop, row.measured

    def write(cycles: float) -> str:
        return format_value(loop.work.tell(cycles, unit), unit)

    constants = ", ".join(f"{name}={value}" for name, value in loop.constants.items())
    yield f"{constants}: {format_value(loop.value(unit), unit)} by ECM"
    if loop.least_cycles < loop.most_cycles:
        yield (
            f"branches  {write(loop.least_cycles)} to {write(loop.most_cycles)}, whatever data "
            "decide and the compiler makes of it"
        )
    yield f"ECM   {loop.ecm.notation()} cy/CL"
    steps = " | ".join(f"{cycles:.1f}" for cycles in loop.ecm.cumulative())
    names = " | ".join(level.name for level in loop.volumes.levels)
    yield f"      {{{steps}}} cy/CL with data in {names}"
    if loop.ecm.saturation_cores is not None:
        yield (
            f"      memory bandwidth is saturated from {loop.ecm.saturation_cores} cores on, from "
            f"{loop.ecm.ideal_saturation_cores} if cores did not wait for each other"
        )
    if loop.roofline is not None:
        bound = loop.roofline.bottleneck.level
        yield f"Roofline  {write(loop.roofline.cycles)}, bound by {bound}"
    if measured is not None:
        times = f"wall {format_seconds(measured.seconds)}, CPU "
        times += f"{format_seconds(measured.cpu_seconds)} per pass"
        yield (
            f"measured  {write(row.measured_cycles)} ({times}, {measured.compiler}); ECM is "
            f"{format_share(row.error, signed=True)} off"
        )
    yield _list_levels(loop)


def _list_levels(loop: LoopPrediction) -> Table:
    """List traffic, cycles and Roofline bounds of each boundary."""
    times = {transfer.farther: transfer for transfer in loop.ecm.transfers}
    lines = {one.farther: one.lines for one in loop.volumes.transfers()}
    rows = []
    for level in loop.volumes.levels:
        time = times.get(level.name)
        ceiling = None if loop.roofline is None else loop.roofline.ceiling(level.name)
        rows.append((
            level.name, f"{level.hits:.4g}", f"{level.misses:.4g}", f"{level.evicts:.4g}",
            f"{time.nearer}-{time.farther}" if time else "",
            f"{lines[level.name]:.4g}" if time else "",
            f"{time.cycles:.1f}" if time else "", f"{ceiling.cycles:.1f}" if ceiling else "",
        ))  # fmt: skip
    return Table(
        columns={
            "level": "text", "hits": "number", "misses": "number", "evicts": "number",
            "boundary": "text", "lines": "number", "cy/CL": "number", "Roofline cy/CL": "number",
        },
        rows=rows,
    )  # fmt: skip


def _list_sweep(name: str, rows: Sequence[_Size], unit: Unit) -> Table:
    measured = ("measured", "wall", "CPU", "error")
    cells: list[list[Value]] = []
    for row in rows:
        loop, roofline, ran = row.loop, row.loop.roofline, row.measured
        cells.append([
            str(loop.constants[name]), loop.ecm.notation(), format_value(loop.value(unit), unit),
            format_value(loop.work.tell(roofline.cycles, unit), unit) if roofline else "",
            str(loop.ecm.saturation_cores or ""),
            "" if ran is None
            else format_value(loop.work.tell(row.measured_cycles, unit), unit),
            None if ran is None else ran.seconds, None if ran is None else ran.cpu_seconds,
            None if ran is None else row.error,
        ])  # fmt: skip
    table = Table(
        columns={
            name: "number", "terms (cy/CL)": "number", f"ECM ({unit})": "number",
            "Roofline": "number", "saturating cores": "number", "measured": "number",
            "wall": "s", "CPU": "s", "error": "signed share",
        },
        rows=cells,
    )  # fmt: skip
    return table if any(row.measured is not None for row in rows) else table.without(*measured)


def _chart_sweep(title: str, name: str, rows: Sequence[_Size], unit: Unit) -> Figure:
    """Chart ECM terms, Roofline and measurements over a size; below, lines over each boundary.

    As the paper's Fig. 3 and 4, in cycles and cache lines per cache line of work.
    """
    sizes = [row.loop.constants.get(name, 0) for row in rows]
    boundaries = [(transfer.nearer, transfer.farther) for transfer in rows[0].loop.ecm.transfers]
    terms = [row.loop.in_core for row in rows]
    times = {"T_nOL": [term.non_overlapping if term else 0.0 for term in terms]}
    lines: dict[str, list[float]] = {}
    for nearer, farther in boundaries:
        times[f"T_{nearer}{farther}"] = [
            sum(
                transfer.cycles
                for transfer in row.loop.ecm.transfers
                if transfer.farther == farther
            )
            for row in rows
        ]
        lines[f"{nearer} - {farther}"] = [
            sum(one.lines for one in row.loop.volumes.transfers()
                if (one.nearer, one.farther) == (nearer, farther))
            for row in rows
        ]  # fmt: skip
    totals: dict[str, list[float]] = {"ECM": [row.loop.cycles for row in rows]}
    if any(terms):
        totals["T_OL"] = [term.hidden if term else 0.0 for term in terms]
    if all(row.loop.roofline is not None for row in rows):
        totals["Roofline"] = [row.loop.roofline.cycles for row in rows if row.loop.roofline]
    upper = [make_series(name, sizes, own, "stack") for name, own in times.items()]
    upper += [make_series(name, sizes, own, "line") for name, own in totals.items()]
    ran = [row for row in rows if row.measured is not None]
    if ran:
        places = [row.loop.constants.get(name, 0) for row in ran]
        upper.append(make_series("measured", places, [row.measured_cycles for row in ran]))
    lower = [(boundary, sizes, own) for boundary, own in lines.items()]
    caption = f"in {unit}: {format_value(rows[0].loop.value(unit), unit)} at the first size"
    x = Axis(title=name or "size")
    return Figure(
        charts=(
            Chart(x=x, y=Axis(title="core cycles per cache line of work"), series=tuple(upper)),
            Chart(x=x, y=Axis(title="lines per cache line of work"),
                  series=tuple(make_series(*one, "line") for one in lower)),
        ),
        title=title if unit is Unit.CYCLES_PER_LINE else f"{title}\n{caption}", columns=1,
        heights=(4.4, 2.6),
    )  # fmt: skip


def _model_problem(options: CpuOptions) -> tuple[object, list[Part], Figure]:
    """Estimate an OpenCL launch, or one for each value of a parameter."""
    machine = options.find_description()
    if machine.kind is not DeviceKind.CPU:
        msg = f"{machine.id} is a {machine.kind}; `kernelcast model gpu` models GPUs"
        raise InputError(msg)
    sizes, swept = options.sizes, options.sizes.name
    rows: list[tuple[int, AnalyticEstimate]] = []
    name = options.file.stem
    with progress() as report:
        for value in sizes.values or (0,):
            parameters = {**sizes.fixed, swept: value} if swept else dict(sizes.fixed)
            source = read_launch_source(options.file, parameters=parameters)
            if options.device_id is not None:
                source = record_accesses(source, options.device_id, report=report)
            name = source.name
            rows.append((value, estimate_analytically(source.launch(), machine)))
    content = [
        {**({"value": value} if swept else {}), **estimate_to_json(name, one)}
        for value, one in rows
    ]
    parts: list[Part]
    if swept:
        table = Table(
            columns={swept: "number", "time": "s", "limiter": "text"},
            rows=[(str(value), one.seconds, one.limiter) for value, one in rows],
        )
        parts = [f"{name} on {machine.id}", table]
    else:
        [(_, estimate)] = rows
        limiters = sorted(estimate.limiters.items(), key=lambda item: -item[1])
        width = estimate.quantities.get("vector_work_items_count", 1.0)
        parts = [
            f"{name} on {estimate.machine}: {format_seconds(estimate.seconds)}, limited by "
            f"{estimate.limiter}",
            Table(
                columns={"limiter": "text", "alone": "s", "of total": "share"},
                rows=[
                    (one, alone, alone / estimate.seconds) for one, alone in limiters if alone > 0
                ],
            ),
            Table(
                columns={"boundary": "text", "GB": "number"},
                rows=[
                    (boundary.replace("_", " "), f"{volume / 1e9:.3g}")
                    for boundary, volume in estimate.volumes.items()
                ],
            ),
            f"{width:.0f} work-items run in the lanes of a vector"
            if width > 1
            else "work-items run one after the other",
        ]
    notes = dict.fromkeys(note for _, one in rows for note in one.notes)
    parts += [f"note: {note}" for note in notes]
    return content, parts, _chart_estimates(f"{name} on {machine.id}", swept, rows)


def _chart_estimates(title: str, name: str, rows: Sequence[tuple[int, AnalyticEstimate]]) -> Figure:
    """Chart the limiters of a launch, over a parameter where one was swept."""
    most = {
        limiter: max(one.limiters.get(limiter, 0.0) for _, one in rows)
        for limiter in {limiter for _, one in rows for limiter in one.limiters}
    }
    largest = sorted((one for one in most if most[one] > 0), key=lambda one: -most[one])
    time = Axis(title="time" if name else "time alone", unit="s")
    if name:
        sizes = [value for value, _ in rows]
        times = {"estimate": [one.seconds for _, one in rows]} | {
            limiter: [one.limiters.get(limiter, 0.0) for _, one in rows] for limiter in largest[:7]
        }
        series = tuple(make_series(name, sizes, own, "line") for name, own in times.items())
        return Figure(charts=(Chart(x=Axis(title=name), y=time, series=series),), title=title)
    total, places = rows[0][1].seconds, range(len(largest))
    chart = Chart(
        x=Axis(title="", names=tuple(largest)), y=time, is_upright=False,
        series=(make_series("alone", places, [most[limiter] for limiter in largest], "bars"),
                make_series("estimate", (total, total), (-0.5, len(largest) - 0.5), "guide")),
    )  # fmt: skip
    return Figure(charts=(chart,), title=title)


def format_value(value: float, unit: Unit) -> str:
    """Write a time or a rate with its unit."""
    if unit is Unit.SECONDS:
        return format_seconds(value)
    if unit in (Unit.ITERATIONS_PER_S, Unit.FLOP_PER_S):
        scale, prefix = next((one for one in _PREFIXES if value >= one[0]), (1.0, ""))
        return f"{value / scale:.2f} {prefix}{unit}"
    return f"{value:.1f} {unit}" if value >= 10 else f"{value:.2f} {unit}"
