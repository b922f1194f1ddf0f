"""``kernelcast model cpu``: C loops by ECM and Roofline, OpenCL kernels by the analytic model."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import click

from kernelcast.analytic.cpu.ecm import Unit
from kernelcast.analytic.cpu.in_core import InCoreProvider, InCoreTerms, ask_osaca
from kernelcast.analytic.cpu.layer_conditions import Transition, advise_blocking, list_transitions
from kernelcast.analytic.cpu.machine import CpuMachine, read_machine
from kernelcast.cli import options as option
from kernelcast.cli.model import chart_limiters, describe_estimate
from kernelcast.cli.terminal import present, progress
from kernelcast.features.loop_nest import read_loop_nest
from kernelcast.launches.machines import find_machine, list_machines
from kernelcast.launches.modelling.cpu_loops import (
    CompiledLoop,
    LoopModel,
    LoopPrediction,
    choose_architecture,
    compile_loop,
    prediction_to_json,
    write_loop,
)
from kernelcast.launches.modelling.estimating import estimate_analytically
from kernelcast.launches.modelling.sources import read_launch_source, record_accesses
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.yaml_files import read_text
from kernelcast.reports.charts import Axis, Chart, Figure, make_series
from kernelcast.reports.numbers import format_seconds
from kernelcast.reports.presenter import Field, Part, Section, Table, write_lines
from kernelcast.sampling.loop_benchmark import measure_loop

_PREFIXES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def _parse_sizes(
    _: click.Context, __: click.Parameter, pairs: Sequence[tuple[str, str]]
) -> dict[str, tuple[int, ...]]:
    sizes = {
        name: option.read_range(text, given_as=f"-D {name} {text!r}", example="100:2000:20")
        for name, text in pairs
    }
    swept = [name for name, values in sizes.items() if len(values) > 1]
    if len(swept) > 1:
        msg = f"-D {', '.join(swept)}: one constant may have a range, the others one value"
        raise InputError(msg)
    return sizes


def _find_description(name: str | None) -> MachineDescription:
    """Find the machine: the one asked for, or the only CPU that was calibrated here."""
    if name is not None:
        return find_machine(name)
    own = [machine for machine in list_machines() if not machine.is_shipped]
    if len(own) == 1:
        return find_machine(own[0].path)
    names = ", ".join(one.name for one in own) or "none; `kernelcast calibrate` makes one"
    raise InputError(f"which machine? Give one with --machine; calibrated here: {names}")


def _read_terms(text: str) -> InCoreProvider:
    try:
        overlapping, loads = (
            float(one) for one in text.replace("|", ",").split(",") if one.strip()
        )
    except ValueError as error:
        raise InputError(
            f"--in-core {text!r}: expected two numbers of cycles per cache line, T_OL,T_nOL, such "
            "as 52,54"
        ) from error
    terms = InCoreTerms(overlapping=overlapping, non_overlapping=loads, provider="given")
    return lambda _, __: terms


def _choose_in_core(
    machine: CpuMachine, compile_here: Callable[[], CompiledLoop]
) -> tuple[CompiledLoop | None, str]:
    """Have OSACA tell the time in the core, or say why the instruction table does."""
    try:
        architecture, _ = choose_architecture(machine)
        if architecture.stands_for and machine.has_measured_instructions:
            note = f"OSACA has no data of {architecture.stands_for}"
            return None, f"in the core: the instructions as measured here, for {note}"
        provider = compile_here()
    except InputError as error:
        return None, f"in the core: instruction table, not OSACA: {error}"
    if provider.loop.calls:
        called = ", ".join(provider.loop.calls)
        return None, f"in the core: instruction table, for OSACA does not know {called}"
    return provider, ""


def _write(loop: LoopPrediction, unit: Unit, cycles: float | None) -> str:
    """Write cycles per cache line in the unit asked for; nothing of none."""
    if cycles is None:
        return ""
    value = loop.work.tell(cycles, unit)
    if unit is Unit.SECONDS:
        return format_seconds(value)
    prefix = ""
    if unit in {Unit.ITERATIONS_PER_S, Unit.FLOP_PER_S}:
        scale, prefix = next((one for one in _PREFIXES if value >= one[0]), (1.0, ""))
        value /= scale
    digits = 1 if value >= 10 and "cy" in unit else 2
    return f"{value:.{digits}f} {prefix}{unit}"


@option.command(
    short="ECM, Roofline and layer conditions of a C loop, or time of an OpenCL kernel.",
    json="Print JSON; cycles are per cache line.",
    plot="FILE: Draw the sweep, as .png or .svg.",
)
def cpu(  # noqa: PLR0913 - each is an option
    file: Path = option.argument("FILE"),
    machine_name: str | None = option.given(
        "--machine NAME",
        "Machine description: a shipped one (ivy-bridge-ep), one calibrated here, or a file.  "
        "[default: the only one calibrated here]",
    ),
    sizes: Mapping[str, tuple[int, ...]] = option.given(
        "-D",
        "Value of a constant of the loop or a parameter of the problem file; one may be a range "
        "FIRST:LAST:STEP. May be repeated.",
        metavar="NAME VALUE", nargs=2, multiple=True, type=str, callback=_parse_sizes,
    ),
    predictor: str = option.given(
        "--cache-predictor",
        "Cache traffic from layer conditions, or from a simulation.",
        type=click.Choice(("lc", "sim")), default="lc",
    ),
    cores: int = option.given(
        "--cores",
        "Busy cores, which divide bandwidth and shared caches.",
        default=1,
    ),
    unit: Unit = option.given(
        "--unit UNIT",
        "cy/CL (core cycles per cache line of work), cy/It, It/s, FLOP/s or s.",
        type=click.Choice([one.value for one in Unit], case_sensitive=False),
        default=Unit.CYCLES_PER_LINE,
    ),
    taken: float | None = option.given(
        "--taken SHARE",
        "Share of iterations in which conditions on data hold, at random.  [default: both sides "
        "execute]",
        type=click.FloatRange(min=0, max=1),
    ),
    given_terms: str | None = option.given(
        "--in-core T_OL,T_NOL",
        "Known cycles per cache line of work in the core, overlapping with transfers and not.",
    ),
    core: str = option.given(
        "--core",
        "Time in the core from OSACA of the compiled loop, or from the machine's instruction "
        "table; auto: OSACA where possible.",
        type=click.Choice(("auto", "osaca", "table")), default="auto",
    ),
    assembly_file: Path | None = option.given(
        "--assembly FILE",
        "Body of the innermost loop for OSACA, compiled elsewhere; needs --per-pass.",
    ),
    architecture: str = option.given(
        "--architecture NAME",
        "OSACA's name of the processor: IVB, SKX, ICL, ZEN4.  [default: by the machine's name, or "
        "of this machine]",
        default="",
    ),
    flags: str = option.given(
        "--flags FLAGS",
        "Of the C compiler, for OSACA and --measure.  [default: -O3, for the machine's processor]",
        default="",
    ),
    iterations_per_pass: float | None = option.given(
        "--per-pass N",
        "Iterations of the source's loop that one pass of the assembly executes.",
        type=option.POSITIVE,
    ),
    overlapping: tuple[str, ...] = option.given(
        "--overlap LEVEL",
        "A level whose transfers overlap with all else (L2, L3, MEM); may be repeated.",
    ),
    solved: str | None = option.given(
        "--transitions NAME",
        "Solve layer conditions for this constant.  [default: the one swept, else the last -D]",
    ),
    measures: bool = option.given("--measure", "Also compile and run the loop here."),
    compiler: str = option.given(
        "--compiler CC",
        "C compiler, for OSACA and --measure.  [default: $CC, cc, gcc, clang]",
        default="",
    ),
    device_id: str | None = option.given(
        "--device ID",
        "Record on this OpenCL device where accesses of the problem go that depend on data.",
    ),
) -> None:  # fmt: skip
    """Model a loop on a CPU: cache traffic, ECM, Roofline, saturation, where to block.

    FILE is a C99 listing (declarations and one loop nest), or the problem file (.yaml) of an
    OpenCL kernel. Nothing is run without --measure or --device; a loop may be compiled.
    """
    is_problem = file.suffix.lower() in {".yaml", ".yml"}
    loop_only = (measures, given_terms, assembly_file, solved, taken is not None)
    ways = (assembly_file is not None, bool(given_terms), core == "osaca")
    is_half = (assembly_file is None) != (iterations_per_pass is None)
    option.refuse({
        "--measure, --in-core, --assembly, --taken and --transitions are for C loops; "
        "`kernelcast estimate --measure` measures OpenCL kernels":
            is_problem and any(loop_only),
        "--assembly and --per-pass belong together, and instead of --in-core and --core osaca":
            is_half or sum(ways) > 1,
        "--device records addresses of OpenCL problems (.yaml), not of C loops":
            device_id is not None and not is_problem,
        "--measure runs the loop on one core; leave --cores out":
            measures and cores > 1,
    })  # fmt: skip
    swept = next((name for name, values in sizes.items() if len(values) > 1), "")
    fixed = {name: values[0] for name, values in sizes.items() if name != swept}
    every = [dict(zip(sizes, one, strict=True)) for one in product(*sizes.values())]
    if is_problem:
        _model_problem(file, _find_description(machine_name), every, swept, device_id)
        return
    source = read_text(file, "loop")
    nest = replace(read_loop_nest(source, fixed, name=file.name), taken=taken)
    machine = read_machine(_find_description(machine_name), overlapping=overlapping)
    in_core: InCoreProvider | None = None  # the instruction table
    if assembly_file is not None:
        in_core = ask_osaca(
            read_text(assembly_file, "assembly"),
            architecture=architecture or choose_architecture(machine)[0].name,
            iterations=iterations_per_pass or 0.0,
        )
    elif given_terms is not None:
        in_core = _read_terms(given_terms)
    elif core == "auto" and not architecture and not flags:
        compile_here = partial(compile_loop, source, nest, machine, every[-1], compiler=compiler)
        in_core, note = _choose_in_core(machine, compile_here)
        nest = replace(nest, notes=(*nest.notes, note)) if note else nest
    elif core != "table":
        in_core = compile_loop(
            source, nest, machine, every[-1],  # the largest size
            compiler=compiler, flags=shlex.split(flags), architecture=architecture,
        )  # fmt: skip
    model = LoopModel(nest=nest, machine=machine, predictor=predictor, in_core=in_core)
    rows: list[dict[str, Any]] = []
    loops: list[dict[str, Any]] = []
    with progress() as report:
        for constants in every:
            size = f"{swept}={constants[swept]}" if swept else "the loop"
            report(f"predicting {size}")
            loop = model.predict(constants, cores)
            row: dict[str, Any] = {"loop": loop, "write": partial(_write, loop, unit)}
            row |= dict.fromkeys(("ran", "cycles", "error"))
            told = prediction_to_json(loop, unit)
            if measures:
                report(f"measuring {size}")
                program = write_loop(source, nest, loop.constants, flags.split())
                ran = measure_loop(*program, compiler)
                # Core cycles per cache line of work, at the machine description's clock.
                cycles = loop.work.cycles(ran["shortest_s"])
                error = loop.cycles / cycles - 1
                row |= {"ran": ran, "cycles": cycles, "error": error}
                value = loop.work.tell(cycles, unit)
                told["measured"] = {**ran, "value": value, "error": error}
            rows.append(row)
            loops.append(told)
    transitions, solutions = _solve(model, fixed, solved, swept, cores)
    told_by = "layer conditions" if predictor == "lc" else "cache simulation"
    busy = f"{cores} cores" if cores > 1 else "1 core"
    title = f"{nest.name} on {machine.name}, {busy}, {told_by}"
    content: dict[str, object] = {
        "kernel": nest.name, "machine": machine.id, "sizes": loops,
        "transitions": [asdict(transition) for transition in transitions],
    }  # fmt: skip
    notes = [note for row in rows for note in row["loop"].notes]
    parts: list[Part] = [title]
    if swept:
        sweep = Table.of(rows, {
            swept: ("number", f"loop.constants.{swept}"),
            "terms (cy/CL)": ("number", lambda one: one["loop"].ecm.notation()),
            f"ECM ({unit})": ("number", lambda one: one["write"](one["loop"].cycles)),
            "Roofline": ("number", lambda one: (
                one["write"](one["loop"].roofline.cycles) if one["loop"].roofline else ""
            )),
            "saturating cores": ("number", lambda one: one["loop"].ecm.saturation_cores or ""),
            "measured": ("number", lambda one: one["write"](one["cycles"])),
            "wall": ("s", "ran.wall_s"), "CPU": ("s", "ran.cpu_s"), "error": "signed share",
        })  # fmt: skip
        parts += [sweep.without_empty("measured", "wall", "CPU", "error"), *solutions]
    else:
        scaling = model.scale(loop.constants)
        advice = advise_blocking(nest, machine, loop.constants, cores)
        content["scaling"] = scaling
        content["advice"] = [asdict(one) for one in advice]
        parts += [*write_lines("loop.txt", of=loop, **rows[0]), _list_levels(loop)]
        if machine.cores > 1:
            parts.append(Table.of(scaling[:16], {
                "cores": "whole",
                f"ECM ({unit})": ("number", lambda one: _write(loop, unit, one["cycles"])),
                "memory": ("text", lambda one: "saturated" if one["is_saturated"] else ""),
            }))  # fmt: skip
        parts += [*solutions, *(f"advice: {one}" for one in advice)]
        notes += model.conflicts(loop.constants)
    present(content, *parts, figure=_chart_sweep(title, swept, rows, unit), notes=notes)


def _solve(
    model: LoopModel, fixed: Mapping[str, int], solved: str | None, swept: str, cores: int
) -> tuple[tuple[Transition, ...], list[Part]]:
    """Solve layer conditions for the constant asked for, else for the one that varies."""
    size = solved or swept or next(reversed([*fixed]), "")
    if not size:
        return (), []
    others = {name: value for name, value in fixed.items() if name != size}
    try:
        transitions = list_transitions(
            model.nest, model.machine, constants=others, size=size, cores=cores
        )
    except InputError as error:
        if solved:
            raise
        return (), [f"note: no transitions of {size}: {error}"]
    table = Table.of(transitions, {
        "level": "text", "condition": "text",
        f"largest {size}": ("number", lambda one: "" if one.largest is None else one.largest),
        "hits": "g", "misses": "g", "evicts": "g",
        "reuse held (bytes)": ("text", lambda one: (
            "all arrays" if one.tail_bytes == "oo" else one.tail_bytes
        )),
    })  # fmt: skip
    title = f"Layer conditions, solved for {size}"
    return transitions, [Section(title=title, parts=[table])] if transitions else []


def _list_levels(loop: LoopPrediction) -> Table:
    times = {one.farther: one for one in loop.ecm.transfers}
    lines = {one.farther: one.lines for one in loop.volumes.transfers()}
    roofs = {} if loop.roofline is None else {one.level: one for one in loop.roofline.ceilings}

    def of(found: Mapping[str, Any], write: Callable[[Any], str]) -> tuple[str, Field]:
        """Write something of a level; nothing where there is none."""
        return "number", lambda one: write(found[one.name]) if one.name in found else ""

    return Table.of(loop.volumes.levels, {
        "level": ("text", "name"), "hits": ".4g", "misses": ".4g", "evicts": ".4g",
        "boundary": ("text", of(times, lambda one: f"{one.nearer}-{one.farther}")[1]),
        "lines": of(times, lambda one: f"{lines[one.farther]:.4g}"),
        "cy/CL": of(times, lambda one: f"{one.cycles:.1f}"),
        "Roofline cy/CL": of(roofs, lambda one: f"{one.cycles:.1f}"),
    })  # fmt: skip


def _chart_sweep(title: str, name: str, rows: Sequence[Mapping[str, Any]], unit: Unit) -> Figure:
    """Chart ECM terms, Roofline and measurements over a size; below, lines over each boundary.

    As the paper's Fig. 3 and 4, in cycles and cache lines per cache line of work.
    """
    loops: list[LoopPrediction] = [row["loop"] for row in rows]
    sizes = [loop.constants.get(name, 0) for loop in loops]
    upper = [make_series(
        "T_nOL", sizes, [one.in_core.non_overlapping if one.in_core else 0.0 for one in loops],
        "stack",
    )]  # fmt: skip
    lower = []
    for edge in loops[0].ecm.transfers:
        nearer, farther = edge.nearer, edge.farther
        cycles = [
            sum(one.cycles for one in loop.ecm.transfers if one.farther == farther)
            for loop in loops
        ]
        lines = [
            sum(one.lines for one in loop.volumes.transfers()
                if (one.nearer, one.farther) == (nearer, farther))
            for loop in loops
        ]  # fmt: skip
        upper.append(make_series(f"T_{nearer}{farther}", sizes, cycles, "stack"))
        lower.append(make_series(f"{nearer} - {farther}", sizes, lines, "line"))
    upper.append(make_series("ECM", sizes, [loop.cycles for loop in loops], "line"))
    if any(loop.in_core for loop in loops):
        hidden = [one.in_core.hidden if one.in_core else 0.0 for one in loops]
        upper.append(make_series("T_OL", sizes, hidden, "line"))
    roofs = [loop.roofline.cycles for loop in loops if loop.roofline is not None]
    if len(roofs) == len(loops):
        upper.append(make_series("Roofline", sizes, roofs, "line"))
    ran = {size: row["cycles"] for size, row in zip(sizes, rows, strict=True) if row["ran"]}
    if ran:
        upper.append(make_series("measured", ran.keys(), ran.values()))
    if unit is not Unit.CYCLES_PER_LINE:
        title += f"\nin {unit}: {_write(loops[0], unit, loops[0].cycles)} at the first size"
    x, per_line = Axis(name or "size"), "per cache line of work"
    charts = (
        Chart(x=x, y=Axis(f"core cycles {per_line}"), series=tuple(upper)),
        Chart(x=x, y=Axis(f"lines {per_line}"), series=tuple(lower)),
    )
    return Figure(charts=charts, title=title, columns=1, heights=(4.4, 2.6))


def _model_problem(
    file: Path,
    machine: MachineDescription,
    every: Sequence[Mapping[str, int]],
    swept: str,
    device_id: str | None,
) -> None:
    """Estimate an OpenCL launch, or one for each value of a parameter."""
    if machine.kind is not DeviceKind.CPU:
        raise InputError(f"{machine.id} is a {machine.kind}; `kernelcast model gpu` models GPUs")
    estimates: list[AnalyticEstimate] = []
    rows: list[dict[str, Any]] = []
    with progress() as report:
        for parameters in every:
            source = read_launch_source(file, parameters=parameters)
            if device_id is not None:
                source = record_accesses(source, device_id, report=report)
            estimates.append(estimate_analytically(source.launch(), machine))
            about = {"value": parameters[swept]} if swept else {}
            rows.append({**about, "kernel": source.name, **asdict(estimates[-1])})
    name, first = source.name, estimates[0]
    title = f"{name} on {machine.id}"
    if swept:
        table = Table.of(
            rows, {swept: ("number", "value"), "time": ("s", "seconds"), "limiter": "text"}
        )
        parts: list[Part] = [title, table]
    else:
        width = first.quantities.get("vector_work_items_count", 1.0)
        parts = [
            describe_estimate(name, first, first.quantities["updates_per_s"] * first.seconds),
            f"\n{width:.0f} work-items run in the lanes of a vector"
            if width > 1
            else "\nwork-items run one after the other",
        ]
    notes = [note for one in estimates for note in one.notes]
    places = [row["value"] for row in rows] if swept else [title]
    chart = chart_limiters("", places, estimates, over=swept)
    present(rows, *parts, figure=Figure(charts=(chart,), title=title if swept else ""), notes=notes)
