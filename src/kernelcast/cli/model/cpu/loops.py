"""Answers ``kernelcast model cpu`` for C loops."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod

from kernelcast.analytic.cpu.layer_conditions import Transition
from kernelcast.analytic.cpu.units import Unit, convert, to_cycles_per_line
from kernelcast.cli.model.cpu.request import CpuRequest
from kernelcast.cli.model.cpu.tables import (
    MeasuredSize,
    make_report,
    make_sweep_table,
    make_transition_table,
)
from kernelcast.cli.terminal import progress, show, show_json, show_line
from kernelcast.expressions.axes import bind_names
from kernelcast.launches.modelling.cpu_formats import prediction_to_json
from kernelcast.launches.modelling.cpu_loops import LoopModel, LoopPrediction
from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class _Solved:
    """Transitions, or why there are none."""

    size: str = ""
    found: tuple[Transition, ...] = ()
    refusal: str = ""


def answer_loop(request: CpuRequest) -> None:
    """Predict, measure where asked, and show."""
    source, model = request.model()
    sizes = request.sizes
    with progress(is_wanted=not request.as_json) as report:
        rows = []
        for constants in _list_sizes(request):
            swept = f"{sizes.name}={constants[sizes.name]}" if sizes.name else "the loop"
            report(f"predicting {swept}")
            found = model.predict(constants, request.cores)
            measured = None
            if request.measures:
                report(f"measuring {swept}")
                measured = _measure(source, model, found, request)
            rows.append((found, measured))
    solved = _solve(request, model)
    if request.as_json:
        _show_json(request, model, rows, solved)
    elif sizes.name:
        _show_sweep(request, model, rows, solved)
    else:
        _show_one(request, model, rows[0], solved)
    if request.plot_file is not None:
        from kernelcast.cli.model.cpu.plot import draw_sweep  # matplotlib takes a while

        draw_sweep(request.plot_file, _title(request, model), sizes.name, rows, request.unit)


def _list_sizes(request: CpuRequest) -> Iterator[dict[str, int]]:
    sizes = request.sizes
    if not sizes.name:
        yield dict(sizes.fixed)
    for value in sizes.values:
        yield {**sizes.fixed, sizes.name: value}


def _measure(
    source: str, model: LoopModel, found: LoopPrediction, request: CpuRequest
) -> MeasuredSize:
    from kernelcast.sampling.loop_benchmark import FLAGS, LoopToRun, measure_loop

    measured = measure_loop(
        LoopToRun(
            source=source,
            constants=found.constants,
            array_bytes=_count_bytes(model, found.constants),
            compiler=request.compiler,
            flags=request.flags.split() or FLAGS,
        )
    )
    return MeasuredSize(
        measurement=measured,
        cycles=to_cycles_per_line(measured.shortest_s, Unit.SECONDS, found.work),
    )


def _count_bytes(model: LoopModel, constants: Mapping[str, int]) -> int:
    """Count the bytes of all arrays."""
    values = bind_names(constants)
    return sum(
        one.element_bytes * prod(int(size.evaluate(values)) for size in one.dimensions)
        for one in model.nest.arrays
    )


def _solve(request: CpuRequest, model: LoopModel) -> _Solved:
    """Solve layer conditions for the constant asked for, else for the one that varies."""
    sizes = request.sizes
    size = request.solved or sizes.name or next(reversed(list(sizes.fixed)), "")
    if not size:
        return _Solved()
    try:
        found = model.transitions(size, sizes.fixed, request.cores)
    except InputError as error:
        if request.solved:
            raise
        return _Solved(size=size, refusal=str(error))
    return _Solved(size=size, found=found)


def _title(request: CpuRequest, model: LoopModel) -> str:
    predictor = "layer conditions" if request.predictor == "lc" else "cache simulation"
    cores = f"{request.cores} cores" if request.cores > 1 else "1 core"
    return f"{model.nest.name} on {model.machine.name}, {cores}, {predictor}"


def _show_one(
    request: CpuRequest,
    model: LoopModel,
    row: tuple[LoopPrediction, MeasuredSize | None],
    solved: _Solved,
) -> None:
    found, measured = row
    show_line(_title(request, model))
    scaling = model.scale(found.constants) if model.machine.cores > 1 else ()
    for part in make_report(found, scaling, request.unit, measured):
        show(part)
    _show_transitions(solved)
    for advice in model.advise(found.constants, request.cores):
        show_line(f"advice: {advice}")
    for note in (*found.notes, *model.conflicts(found.constants)):
        show_line(f"note: {note}")


def _show_sweep(
    request: CpuRequest,
    model: LoopModel,
    rows: Sequence[tuple[LoopPrediction, MeasuredSize | None]],
    solved: _Solved,
) -> None:
    show_line(_title(request, model))
    show(make_sweep_table(request.sizes.name, rows, request.unit))
    _show_transitions(solved)
    for note in dict.fromkeys(note for found, _ in rows for note in found.notes):
        show_line(f"note: {note}")


def _show_transitions(solved: _Solved) -> None:
    if solved.refusal:
        show_line(f"note: no transitions of {solved.size}: {solved.refusal}")
    elif solved.found:
        show_line(f"\nLayer conditions, solved for {solved.size}")
        show(make_transition_table(solved.size, solved.found))


def _show_json(
    request: CpuRequest,
    model: LoopModel,
    rows: Sequence[tuple[LoopPrediction, MeasuredSize | None]],
    solved: _Solved,
) -> None:
    sizes = []
    for found, measured in rows:
        content = prediction_to_json(found, request.unit)
        if measured is not None:
            content["measured"] = {
                "wall_s": measured.measurement.seconds,
                "cpu_s": measured.measurement.cpu_seconds,
                "shortest_s": measured.measurement.shortest_s,
                "compiler": measured.measurement.compiler,
                "value": convert(measured.cycles, request.unit, found.work),
                "error": found.cycles / measured.cycles - 1,
            }
        sizes.append(content)
    content = {
        "kernel": model.nest.name,
        "machine": model.machine.id,
        "sizes": sizes,
        "transitions": [asdict(one) for one in solved.found],
    }
    if not request.sizes.name:
        constants = rows[0][0].constants
        content["scaling"] = [asdict(one) for one in model.scale(constants)]
        content["advice"] = [asdict(one) for one in model.advise(constants, request.cores)]
    show_json(content)
