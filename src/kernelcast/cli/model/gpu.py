"""``kernelcast model gpu`` and ``fit``."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

import click

from kernelcast.cli import options as option
from kernelcast.cli.model import chart_limiters, describe_estimate
from kernelcast.cli.terminal import present, progress, progress_bar
from kernelcast.expressions.accesses import AccessKind
from kernelcast.features.written_accesses import WrittenKernel, read_access, read_array
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.gpu_estimates import (
    RATE,
    Configuration,
    compare_with_measured,
    configuration_to_json,
    configure,
    derive_points,
    find_transition,
    fit_all,
    read_hit_rates_file,
    read_measurements,
    sweep_local_sizes,
    write_folds,
    write_hit_rates,
)
from kernelcast.launches.modelling.launches import ModelledKernel, model_written, parse_fold
from kernelcast.launches.modelling.sources import read_launch_source, record_accesses
from kernelcast.records.arithmetic import Number
from kernelcast.records.errors import InputError, NDRangeError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.reports.charts import Axis, Chart, Figure, make_series
from kernelcast.reports.numbers import format_share
from kernelcast.reports.presenter import Field, Part, Table, Value

_SWEEP = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*=(?P<range>[^=]+)")
_COLUMNS: Final[Mapping[str, tuple[str, Field]]] = {
    "time": ("s", "estimate.seconds"),
    "updates/s": ("count", lambda one: one.updates / one.estimate.seconds),
    "limited by": ("text", "estimate.limiter"),
    "B/update\nL2 to L1": (".2f", lambda one: one.estimate.volumes["L2_to_L1"] / one.updates),
    "B/update\nDRAM to L2": (".2f", lambda one: one.estimate.volumes["DRAM_to_L2"] / one.updates),
    "B/update\nL2 to DRAM": (".2f", lambda one: one.estimate.volumes["L2_to_DRAM"] / one.updates),
}


@option.command(
    short="Time, limiters and data volumes of a kernel on a GPU.",
    plot="FILE: Draw the result, as .png or .svg.",
)  # fmt: skip
def gpu(  # noqa: PLR0913 - each is an option
    file: Path | None = option.argument("[P.yaml]"),
    machine_names: tuple[str, ...] = option.given(
        "--machine NAME",
        "Machine description: a shipped one (a100), one calibrated here, or a file; may be "
        "repeated.",
        required=True,
    ),
    local_sizes: tuple[str, ...] = option.given(
        "--local X,Y,Z", "Local size, instead of the file's; may be repeated with --sweep-size."
    ),
    folds: tuple[str, ...] = option.given(
        "--fold 2z",
        "Let each work-item compute several updates along an axis; may be repeated.",
    ),
    sweeps_local: bool = option.given("--sweep-local", "Rank all local sizes with powers of two."),
    sweeps_fold: bool = option.given(
        "--sweep-fold", "Rank the foldings 2y and 2z as well, each with all local sizes."
    ),
    sweep_size: str | None = option.given(
        "--sweep-size NAME=A:B:STEP",
        "Vary a parameter of the file from A to B: shows where caches become too small.",
    ),
    measured_file: Path | None = option.given(
        "--measured FILE",
        "Compare with measured launches: a table (.csv or .json) as for `model fit`, also with "
        "updates_per_s.",
    ),
    device_id: str | None = option.given(
        "--device ID",
        "Record on this OpenCL device, of whatever kind, where accesses go that depend on data.",
    ),
    parameters: Mapping[str, Number] = option.parameters,
    arrays: tuple[str, ...] = option.given(
        "--array NAME:TYPE:SIZES",
        "Declare an array for accesses as text, contiguous dimension first: "
        "src:float64:640x512x512.",
    ),
    loads: tuple[str, ...] = option.given(
        "--access TEXT",
        'A load of every work-item, such as "src[x-1][y] if x > 0"; x, y, z are global ids.',
    ),
    stores: tuple[str, ...] = option.given("--store TEXT", "A store."),
    atomics: tuple[str, ...] = option.given("--atomic TEXT", "An atomic operation."),
    scalars: Mapping[str, Number] = option.numbers(
        "--scalar NAME=VALUE", "A name that accesses as text may use."
    ),
    operations: Mapping[str, Number] = option.numbers(
        "--operation KIND=COUNT",
        "Operations of every work-item, such as fp64=25 or fp32_fma=8.",
    ),
    global_size: str | None = option.given("--global X,Y,Z", "Global size, for accesses as text."),
    global_offset: str | None = option.given("--offset X,Y,Z", "Global offset, likewise."),
    registers: int | None = option.given(
        "--registers N",
        "32-bit registers per work-item, which limit how many run at once.",
    ),
    hit_rates: str | None = option.given(
        "--hit-rates NAME",
        "Hit rates of the caches: a shipped set (paper-2022, with the paper's limiters) or a file "
        "of `model fit`.",
    ),
    shown: int = option.given("--top N", "Rows of the ranking.", default=10),
) -> None:
    """Model a kernel on GPUs: data volumes between caches and memory, limiters, time.

    P.yaml is a problem file, whose source is analysed, or an access file. Accesses can also be
    typed with --array, --access, --store and --global. Nothing is run; --device records addresses
    that depend on data.
    """
    written, ranks = bool(arrays or loads or stores or atomics), sweeps_local or sweeps_fold
    option.refuse({
        "give a file (P.yaml), or accesses as text (--array, --access, --global)":
            written == (file is not None),
        "accesses as text need --global, the sizes of the index space":
            written and global_size is None,
        "--global, --offset, --scalar and --operation are for accesses as text; P.yaml says them "
        "itself: change them there, or by --param":
            file is not None and (global_size or global_offset or scalars or operations),
        "--param replaces a parameter of P.yaml; accesses as text take --scalar":
            written and bool(parameters),
        "--sweep-size sweeps a parameter of a file, and nothing else at the same time":
            sweep_size is not None and (ranks or written),
        "several --local are for --sweep-size; --sweep-local tries all local sizes":
            len(local_sizes) > 1 and sweep_size is None,
        "--sweep-local, --sweep-fold and --measured have local sizes of their own: leave --local "
        "out":
            local_sizes and (ranks or measured_file),
        "--measured compares with the launches of one machine; it cannot be swept":
            measured_file and (ranks or sweep_size or len(machine_names) > 1),
    })  # fmt: skip
    own: list[tuple[int, ...] | None] = [None]  # the file's local size
    shapes = [_read_sizes(text, "--local") for text in local_sizes] or own
    accesses = {AccessKind.LOAD: loads, AccessKind.STORE: stores, AccessKind.ATOMIC: atomics}

    def read_source(extra: Mapping[str, Number] | None = None) -> ModelledKernel:
        if file is not None:
            source = read_launch_source(file, parameters={**parameters, **(extra or {})})
        else:
            offset = _read_sizes(global_offset, "--offset") if global_offset else ()
            sizes = _read_sizes(global_size or "", "--global")
            kernel = _read_accesses(arrays, accesses, scalars, operations)
            source = model_written(kernel, NDRange(global_size=sizes, global_offset=offset))
        if folds:
            source.folds = tuple(map(parse_fold, folds))
        if registers is not None:
            source.registers = registers
        if hit_rates is not None:
            source.hit_rates = read_hit_rates_file(hit_rates)
        return source

    machines = [find_machine(name) for name in machine_names]
    if sweep_size is not None:
        _sweep_sizes(sweep_size, read_source, shapes, machines)
        return
    source = read_source()
    if device_id is not None:
        with progress() as report:
            source = record_accesses(source, device_id, report=report)
    if sweeps_local or sweeps_fold:
        _sweep_local_sizes(source, machines, shown, with_folds=sweeps_fold)
    elif measured_file is not None:
        _, launches = read_measurements(measured_file)
        comparisons = compare_with_measured(source, machines[0], launches)
        table = Table.of(comparisons, {
            "quantity": "text", "launches": ("whole", lambda one: len(one["launches"])),
            "mean error": "share", "bias": "signed share",
            "Kendall's tau": (".2f", "kendall_tau"),
        })  # fmt: skip
        title = f"{source.name} on {machines[0].id}: predicted against measured"
        parts: list[Part] = [title, table]
        charts = []
        for one in comparisons:
            pairs = [(row["predicted"], row["measured"]) for row in one["launches"]]
            predicted, measured = zip(*pairs, strict=True)
            if one["quantity"] == RATE:
                _, reached = max(pairs, key=lambda pair: pair[0])
                parts.append(
                    "the launch predicted fastest reaches "
                    f"{format_share(reached / max(measured))} of the fastest measured"
                )
            ends = (0.0, max(*measured, *predicted))
            charts.append(Chart(
                title=one["quantity"].replace("_", " "), is_square=True,
                x=Axis("measured", "count"), y=Axis("predicted", "count"),
                series=(
                    make_series("launches", measured, predicted),
                    make_series("equal", ends, ends, "guide"),
                ),
            ))  # fmt: skip
        present(comparisons, *parts, figure=Figure(charts=tuple(charts), title=title))
    else:
        [shape] = shapes
        found = [configure(source, machine, shape) for machine in machines]
        labels = [f"{one.estimate.machine}\n{one.label}" for one in found]
        charts = [
            chart_limiters("Limiters", labels, [one.estimate for one in found]),
            _chart_volumes(labels, found),
        ]
        # One machine is described in full, several in a table.
        [first, *others] = found
        about = {"machine": ("text", "estimate.machine"), "local size": ("text", "label")}
        present(
            [configuration_to_json(source.name, one) for one in found],
            Table.of(found, {**about, **_COLUMNS}, title=source.name)
            if others
            else describe_estimate(
                source.name, first.estimate, first.updates, f" (local size {first.label})"
            ),
            figure=Figure(charts=tuple(charts), title=source.name, columns=1),
            notes=[note for one in found for note in one.estimate.notes],
        )


def _read_accesses(
    array_texts: Sequence[str], texts: Mapping[AccessKind, Sequence[str]],
    scalars: Mapping[str, Number], operations: Mapping[str, Number],
) -> WrittenKernel:  # fmt: skip
    """Read a kernel of accesses as text."""
    for name, value in scalars.items():
        if isinstance(value, float) and not value.is_integer():
            raise InputError(f"{name} is {value}; expected a whole number")
    arrays = {}
    for text in array_texts:
        array = read_array(text, tuple(scalars))
        if array.name in arrays:
            raise InputError(f"array {array.name!r} is declared twice; keep one declaration")
        arrays[array.name] = array
    pairs = [(kind, text) for kind, own in texts.items() for text in own]
    return WrittenKernel(
        name="typed accesses", arrays=tuple(arrays.values()),
        scalars={name: int(value) for name, value in scalars.items()},
        accesses=tuple(
            read_access(text, arrays, kind=kind, scalars=tuple(scalars), site=site)
            for site, (kind, text) in enumerate(pairs)
        ),
        operations={name: float(count) for name, count in operations.items()},
    )  # fmt: skip


def _sweep_local_sizes(
    source: ModelledKernel, machines: Sequence[MachineDescription], shown: int, *, with_folds: bool
) -> None:
    # Folding along dimension 0 would spread neighbouring work-items over memory.
    beyond = (((axis, 2),) for axis in range(1, source.ndrange.dimensions))
    folds = [(), *beyond] if with_folds else None
    parts: list[Part] = []
    charts, content, notes = [], [], []
    ranks: dict[int, int] = {}
    for machine in machines:
        with progress_bar() as tell:
            report = partial(tell, description=machine.id)
            every, refused = sweep_local_sizes(source, machine, folds, report)
        content.append({
            "kernel": source.name, "machine": machine.id,
            "configurations": [configuration_to_json("", one) for one in every],
            "refused": [{"configuration": label, "reason": reason} for label, reason in refused],
        })  # fmt: skip
        where = f"{source.name} on {machine.id}"
        fastest = every[:shown]
        # Rank the fastest configurations, and add the slowest for comparison.
        is_whole = len(every) <= shown + 1
        ranks.update({id(one): rank for rank, one in enumerate(every, start=1)})
        table = Table.of(
            every if is_whole else [*fastest, every[-1]],
            {
                "rank": ("whole", lambda one: ranks[id(one)]),
                "local size": ("text", lambda one: _join(one.local_size)),
                "fold": ("text", lambda one: write_folds(one.folds) or "-"), **_COLUMNS,
            },
            breaks=() if is_whole else (shown,),
        )  # fmt: skip
        parts += [f"{where}: {len(every)} configurations, fastest first", table]
        if refused:
            label, reason = refused[0]
            more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
            notes.append(f"{label}{more} cannot be launched: {reason}")
        notes += every[0].estimate.notes
        labels = [
            _join(one.local_size) + (f"\n{write_folds(one.folds)}" if one.folds else "")
            for one in fastest
        ]
        estimates = [one.estimate for one in fastest]
        charts.append(chart_limiters(f"{where}: fastest of {len(every)}", labels, estimates))
    figure = Figure(charts=tuple(charts), columns=1)
    present(content, *parts, figure=figure, notes=notes)


def _join(local_size: Sequence[int]) -> str:
    return "x".join(map(str, local_size))


def _sweep_sizes(
    sweep: str,
    read_source: Callable[[Mapping[str, Number]], ModelledKernel],
    local_sizes: Sequence[tuple[int, ...] | None],
    machines: Sequence[MachineDescription],
) -> None:
    match = _SWEEP.fullmatch(sweep)
    if match is None or ":" not in match["range"]:
        msg = f"--sweep-size {sweep!r}: expected NAME=FIRST:LAST:STEP, such as NX=300:800:20"
        raise InputError(msg)
    name, given_as = match["name"], f"--sweep-size {sweep!r}"
    values = option.read_range(match["range"], given_as=given_as, example="300:800:20")
    curves: dict[str, list[tuple[int, Configuration]]] = {}
    for machine in machines:
        with progress_bar() as tell:
            for done, (value, local_size) in enumerate(product(values, local_sizes), start=1):
                source = read_source({name: value})
                with suppress(NDRangeError):
                    answer = configure(source, machine, local_size)
                    label = f"{answer.estimate.machine} {answer.label}"
                    curves.setdefault(label, []).append((value, answer))
                tell(done, len(values) * len(local_sizes), machine.id)
    if not curves:
        msg = "the local size fits no size of the domain, or exceeds the machine's limit"
        raise InputError(msg)
    # Chart DRAM loads per update over the size (the paper's Fig. 23).
    rows = [(value, one) for curve in curves.values() for value, one in curve]
    lines, series, climbs = [], [], dict[str, dict[str, float] | None]()
    for label, curve in curves.items():
        sizes = [value for value, _ in curve]
        loads = [one.estimate.volumes.get("DRAM_to_L2", 0.0) / one.updates for _, one in curve]
        series.append(make_series(label, sizes, loads, "line"))
        climbs[label] = climb = find_transition(sizes, loads)
        lines.append(
            f"{label}: no layer-condition transition, DRAM loads stay as they are"
            if climb is None
            else f"{label}: DRAM loads climb from {climb['low']:.1f} to {climb['high']:.1f} "
            f"B/update, beginning at {name} = {climb['begins']:.0f}, half way at "
            f"{climb['middle']:.0f}"
        )
    top = max(point.y for one in series for point in one.points)
    series += [
        make_series("loads begin to climb", [one["begins"]] * 2, (0.0, top), "guide")
        for one in climbs.values() if one is not None
    ]  # fmt: skip
    content = {
        "parameter": name,
        "sizes": [{"value": value, **configuration_to_json("", one)} for value, one in rows],
        "transitions": climbs,
    }
    places = {id(one): value for value, one in rows}
    table = Table.of(
        [one for _, one in rows],
        {
            name: ("number", lambda one: places[id(one)]),
            "local size": ("text", "label"),
            **_COLUMNS,
        },
    )
    chart = Chart(x=Axis(name), y=Axis("DRAM loads (B/update)"), series=tuple(series))
    present(content, table, *lines, figure=Figure(charts=(chart,)))


def _chart_volumes(labels: Sequence[str], answers: Sequence[Configuration]) -> Chart:
    """Chart what the loads are made of, per update (the paper's Fig. 15, 19 and 22)."""
    parts = []  # what the loads of each configuration are made of, in bytes per update
    for answer in answers:
        l1, wave = answer.volumes.l1, answer.volumes.wave
        of_group = answer.volumes.work_groups / answer.updates
        of_wave = wave.waves / answer.updates
        missed = sum(overlap.shared_bytes * (1 - overlap.hit_rate) for overlap in wave.overlaps)
        again = missed + wave.capacity_load_bytes + wave.partial_store_bytes
        parts.append({
            ("L2 to L1", "compulsory"): l1.compulsory_bytes * of_group,
            ("L2 to L1", "capacity misses"): l1.capacity_bytes * of_group,
            ("DRAM to L2", "for the first time"): max(0.0, wave.loaded_bytes - again) * of_wave,
            ("DRAM to L2", "lost since earlier waves"): missed * of_wave,
            ("DRAM to L2", "capacity misses"): wave.capacity_load_bytes * of_wave,
            ("DRAM to L2", "partial stores"): wave.partial_store_bytes * of_wave,
            ("DRAM to L2", "reused, not loaded"): wave.reused_bytes * of_wave,
        })  # fmt: skip
    series = []
    for boundary, name in dict.fromkeys(key for part in parts for key in part):
        volumes = [part.get((boundary, name), 0.0) for part in parts]
        if max(volumes) > 0:
            shift = 0 if boundary == "L2 to L1" else 1
            series.append(make_series(
                f"{boundary}: {name}", range(shift, 2 * len(volumes), 2), volumes, "stack",
                is_hollow=name.startswith("reused"),
            ))  # fmt: skip
    names = [f"{label}\n{boundary}" for label in labels for boundary in ("L2 to L1", "DRAM to L2")]
    return Chart(
        title="Loads", x=Axis("", names=tuple(names)), y=Axis("loads (B/update)"),
        series=tuple(series),
    )  # fmt: skip


def _read_sizes(text: str, name: str) -> tuple[int, ...]:
    """Read one to three whole numbers, joined by commas or by ``x``."""
    parts = text.replace("x", ",").split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdecimal() for part in parts):
        raise InputError(f"{name} {text!r}: expected one to three whole numbers, such as 32,4,8")
    return tuple(map(int, parts))


@option.command(
    short="Fit hit rates of a GPU's caches to measurements.",
    json="",
    plot="FILE: Draw points and curves.",
)
def fit(
    measurements: Path = option.argument("MEASUREMENTS.csv|json"),
    problem_file: Path | None = option.given(
        "--problem P.yaml",
        "The kernel that was measured, where the measurements are volumes.",
    ),
    machine: str | None = option.given("--machine NAME", "The device it was measured on."),
    parameters: Mapping[str, Number] = option.parameters,
    out_file: Path = option.given(
        "--out FILE.yaml",
        "Where to write the hit rates; `model gpu --hit-rates` reads them.",
        default=Path("hit_rates.yaml"),
    ),
) -> None:
    """Fit hit rates of a GPU's caches to measurements, with the standard errors of the constants.

    The hit rate at oversubscription O is 1 - a * exp(-b * exp(-c * O)), or a * exp(-b * exp(c * O))
    for data that is used again at one distance. A row of MEASUREMENTS is either a point (function,
    oversubscription, hit_rate) or a launch with its volumes by hardware counters (local_size, fold,
    l2_load_bytes_per_update, dram_load_bytes_per_update, dram_store_bytes_per_update), which needs
    --problem and --machine. Hit rates whose points tell too little keep the shipped constants.
    """
    points, launches = read_measurements(measurements)
    if launches:  # hit rates follow from volumes
        if problem_file is None or machine is None:
            msg = "measured volumes need --problem and --machine: what was run, and where"
            raise click.UsageError(msg)
        source = read_launch_source(problem_file, parameters=parameters)
        for name, derived in derive_points(source, find_machine(machine), launches).items():
            points[name] += derived
    fits = fit_all(points)
    of = f" of {problem_file.stem}" if problem_file else ""
    on = f" on {machine}" if machine else ""
    provenance = (
        f"fitted to {sum(map(len, points.values()))} points from {measurements.name}{of}{on}"
    )
    write_hit_rates(out_file, provenance, fits, points)
    rows: list[Sequence[Value]] = []
    charts = []  # measured hit rates and the curves fitted to them (the paper's Fig. 12, 16 and 18)
    for name, (rate, errors) in fits.items():
        numbers = [f"{getattr(rate, key):.3g} +- {error:.2g}" for key, error in errors.items()]
        rows.append((name, len(points[name]), *numbers, f"{rate.deviation:.3f}"))
        over, measured = zip(*points[name], strict=True)
        places = [1.05 * max(over) * number / 200 for number in range(201)]
        charts.append(Chart(
            title=name, x=Axis(title="oversubscription"), y=Axis(title="hit rate"),
            series=(
                make_series("measured", over, measured),
                make_series("fit", places, map(rate.at, places), "guide"),
            ),
        ))  # fmt: skip
    rows += [
        (name, len(own), "not fitted", "", "", "")
        for name, own in sorted(points.items())
        if own and name not in fits
    ]
    table = Table(
        columns={"hit rate": "text", "points": "whole", "a": "number", "b": "number",
                 "c": "number", "deviation": "number"},
        rows=rows,
    )  # fmt: skip
    present(None, table, f"written to {out_file}", figure=Figure(charts=tuple(charts)))
