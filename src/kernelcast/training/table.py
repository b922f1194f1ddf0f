"""Observations, from stores and files alike, as the table that models learn from."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path

import pandas as pd

from kernelcast.features.vector import SampledSource, combine
from kernelcast.launches.data_folder import choose_store
from kernelcast.launches.data_store import open_data_store
from kernelcast.launches.machines import list_machines, read_machine
from kernelcast.launches.problem_file import read_parameters, read_problem
from kernelcast.models.linear import fit_linear
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureGroup, FeatureSchema, make_vector
from kernelcast.records.machine import MachineDescription, read_peaks
from kernelcast.records.observation import Observation
from kernelcast.records.plain import pick
from kernelcast.records.samples import SampleRun
from kernelcast.records.training_table import TrainingTable, make_table
from kernelcast.training.settings import CPU_MODEL
from kernelcast.training_data.sources import SHIPPED, list_files, name_folders, read_file
from kernelcast.training_data.store import Selection
from kernelcast.training_data.store.schema import SOUND

FindMachine = Callable[[str], MachineDescription | None]

_UNITS = "sampled.issued_instructions_per_s_per_compute_unit"
_RATE = "sampled.issued_instructions_per_s"
_ISSUED = "counters.issued_instructions_per_work_item"
_ANALYTIC = "analytic.estimate_s"
# Of samples, but of the source as well, which rows do not hold.
_OF_SOURCE = ("sampled.lines_per_work_group_ratio", "sampled.pages_per_work_group_ratio")


def read_observations(
    sources: Sequence[str | Path] = (),
    *,
    devices: Sequence[str] = (),
    left_out: Counter[str] | None = None,
) -> Iterator[Observation]:
    """Read observations one by one, without first launches, outliers and those of busy machines."""
    for one in _read_sources(sources, Selection(devices=tuple(devices))):
        flags = one.flags & SOUND.without_flags
        if devices and not one.launch.device.id.startswith(tuple(devices)):
            continue
        if not flags:
            yield one
        elif left_out is not None:
            left_out[f"flagged as {', '.join(sorted(flags))}"] += 1


def _read_sources(sources: Sequence[str | Path], wanted: Selection) -> Iterator[Observation]:
    """Read what files hold, and what is wanted of stores."""
    for source in name_folders(sources) or (None,):
        files = [] if source is None else list_files(source)
        for path in files:
            found = read_file(path)
            is_own = found.kind == "table"
            yield from (
                _read_problem(one, path.parent) if is_own else one for one in found.observations
            )
        if not files:
            with open_data_store(source, must_exist=True) as store:
                yield from store.find(wanted)


def choose_sources(
    sources: Sequence[str | Path], tell: Callable[[str], None]
) -> Sequence[str | Path]:
    """Choose what is read where none is named: the user's store, else what is shipped."""
    if sources:
        return sources
    place = choose_store()
    if "://" in str(place) or Path(place).is_file():
        with open_data_store(place) as store:
            if any(one.samples and one.features for one in islice(store.find(SOUND), 100)):
                return (place,)
    tell(f"{place} has no rows to judge by: the observations that are shipped are taken")
    return (SHIPPED,)


def _read_problem(one: Observation, folder: Path) -> Observation:
    """Complete an observation by its problem file, where a table names one: index space, source."""
    name = one.launch.parameters.get("problem")
    if not isinstance(name, str) or one.features is None:
        return one
    known = read_parameters(folder / name)
    given = {
        key: value
        for key, value in one.launch.parameters.items()
        if key in known and not isinstance(value, str)
    }
    from kernelcast.launches.features import FeatureSettings, read_source_features  # loads runtimes

    problem = read_problem(folder / name, parameters=given)
    settings = FeatureSettings(groups=frozenset(FeatureGroup))
    vector = read_source_features(problem, settings).vector
    names = dict.fromkeys((*vector.schema.names, *one.features.schema.names))
    kernel = replace(one.launch.kernel, digest=problem.kernel.digest)
    return replace(
        one,
        launch=replace(one.launch, kernel=kernel, ndrange=problem.ndrange),
        features=make_vector(
            one.features.as_dict() | vector.as_dict(),
            FeatureSchema(names=tuple(names), version=vector.schema.version),
        ),
    )


def load_training_table(
    sources: Sequence[str | Path] = (),
    *,
    devices: Sequence[str] = (),
    tell: Callable[[str], None] = lambda _: None,
    seen: list[Observation] | None = None,
    of_one_sampler: bool = False,
) -> TrainingTable:
    """Load observations that have features, of each device those of its newest sampler; `seen`
    takes all that were read."""
    sources = name_folders(sources)
    left_out: Counter[str] = Counter()
    rows = [] if seen is None else seen
    try:
        rows += read_observations(sources, devices=devices, left_out=left_out)
        return tabulate(
            rows, find_machine=machines_beside(sources), left_out=left_out,
            of_one_sampler=of_one_sampler,
        )  # fmt: skip
    finally:
        for reason, count in sorted(left_out.items()):
            tell(f"{count} observations are left out: {reason}")


def tabulate(
    observations: Iterable[Observation],
    *,
    find_machine: FindMachine = lambda _: None,
    left_out: Counter[str] | None = None,
    of_one_sampler: bool = False,
) -> TrainingTable:
    """Put observations into columns; those without features or samples are left out."""
    left_out = Counter() if left_out is None else left_out
    by_key: dict[str, Observation] = {}
    for one in observations:
        if one.features is None:
            left_out["no features"] += 1
        else:
            known = by_key.get(one.key)
            if known is not None and known.runs != one.runs and known.samples == one.samples:
                left_out["since another source has other times of the same measurement"] += 1
            by_key[one.key] = one if known is None else _merge(known, one)
    # A copy would count twice, and stand on both sides of a split.
    distinct: dict[object, Observation] = {}
    for _, one in sorted(by_key.items()):
        stored = tuple(_list_stored(one).items())
        distinct.setdefault((one.launch.key, one.runs, stored, one.samples), one)
    if copies := len(by_key) - len(distinct):
        left_out["exact copies of other rows, which count once"] += copies
    rows: list[tuple[Observation, SampleRun | None]] = []
    for one in keep_newest([*distinct.values()], left_out, of_one_sampler=of_one_sampler):
        # Give the first samples that were taken as an estimate takes them; None if there are none.
        usual = (place for place, samples in enumerate(one.samples) if samples.multiple == 0)
        first = None if one.launch.ndrange is None else next(usual, None)
        rows.append((one, None if first is None else one.sample_run(first)))
    if any(run is not None for _, run in rows):
        count = len(rows)
        rows = [(one, run) for one, run in rows if run is not None]
        if count > len(rows):
            left_out["no samples as an estimate takes them"] += count - len(rows)
    schema = _choose_schema([one for one, _ in rows], left_out)
    described = [_describe(one, run, find_machine(one.launch.device.id)) for one, run in rows]
    features = pd.DataFrame([values for values, _ in described], columns=[*schema.names])
    others = pd.DataFrame([columns for _, columns in described])
    return make_table(
        schema, features, {str(name): column.to_numpy() for name, column in others.items()}
    )


def keep_newest(
    rows: Collection[Observation], left_out: Counter[str], *, of_one_sampler: bool
) -> Iterator[Observation]:
    """Leave out rows of older samplers, of each device or of all, and features of older models."""
    models, samplers = Counter[str](), Counter[str]()
    for one in rows:
        scope = "" if of_one_sampler else one.launch.device.id
        if _ANALYTIC in _list_stored(one):
            models[scope] = max(models[scope], read_cpu_model(one))
        if one.samples:
            samplers[scope] = max(samplers[scope], one.sampler)
    for one in rows:
        device, stored = one.launch.device.id, _list_stored(one)
        scope = "" if of_one_sampler else device
        if one.samples and one.sampler < samplers[scope]:
            left_out[
                f"of {device}, taken by samplers before revision {samplers[scope]}; `kernelcast "
                "collect` measures them anew"
            ] += 1
        elif one.features and _ANALYTIC in stored and read_cpu_model(one) < models[scope]:
            left_out[
                f"analytic features of CPU models before revision {models[scope]}, of these rows"
            ] += 1
            kept = {name: x for name, x in stored.items() if not name.startswith("analytic.")}
            yield replace(one, features=make_vector(kept, one.features.schema))
        else:
            yield one


def _list_stored(one: Observation) -> dict[str, float]:
    return {} if one.features is None else one.features.as_dict()


def machines_beside(sources: Sequence[str | Path] = ()) -> FindMachine:
    """Find descriptions beside observations, then those that were calibrated here or shipped."""
    folders = [Path(one) for one in sources if "://" not in str(one)]
    folders = [one if one.is_dir() else one.parent for one in folders]

    @cache
    def find(device_id: str) -> MachineDescription | None:
        beside = (folder / f"{device_id}.yaml" for folder in folders)
        known = (one.path for one in list_machines() if one.name == device_id)
        path = next((one for one in (*beside, *known) if one.is_file()), None)
        return None if path is None else read_machine(path)

    return find


def _merge(known: Observation, other: Observation) -> Observation:
    """Make one observation of two with the same key: samples of one, the newer features."""
    if known.samples and other.samples:
        return other
    sampled, plain = (known, other) if known.samples else (other, known)
    older, newer = sorted((sampled, plain), key=read_cpu_model)
    if older.features is None or newer.features is None:
        return newer
    schemas = (older.features.schema, newer.features.schema)
    values = older.features.as_dict() | newer.features.as_dict()
    revision = newer.versions.get(CPU_MODEL, "0")
    return replace(
        sampled,
        features=make_vector(values, max(schemas, key=lambda one: (one.version, len(one.names)))),
        versions={**sampled.versions, CPU_MODEL: revision},
    )


def read_cpu_model(one: Observation) -> int:
    """Return the revision of the CPU model of analytic features; 0 where it was not noted."""
    return int(one.versions.get(CPU_MODEL, 0))


def _choose_schema(rows: Sequence[Observation], left_out: Mapping[str, int]) -> FeatureSchema:
    """Return the schema with the most names; rows of others of its version lack some of them."""
    found = Counter(one.features.schema for one in rows if one.features is not None)
    if not found:
        reasons = "; ".join(f"{count} {reason}" for reason, count in left_out.items())
        raise InputError(
            "there are no sampled observations with features to learn from"
            + (f" (left out: {reasons})" if reasons else "")
            + "; `kernelcast collect` measures some, `--data` and `--device` name others"
        )
    versions = sorted({one.version for one in found})
    if len(versions) > 1:
        raise InputError(
            f"observations have features of versions {', '.join(map(str, versions))}: the same "
            "names mean something else; collect the older ones anew, or leave them out"
        )
    return max(found, key=lambda one: (len(one.names), found[one], one.id))


def _describe(
    one: Observation, run: SampleRun | None, machine: MachineDescription | None
) -> tuple[dict[str, float], dict[str, str | float | None]]:
    """Return the features of a row, those of samples made of the samples that were chosen, and the
    other columns of a table; None for what is not known."""
    kernel, values, fit = one.launch.kernel, _list_stored(one), None
    if run is not None:
        fit = fit_linear(run)
        source = SampledSource(
            run=run,
            linear_s=fit.seconds,
            compute_units=round(_divide(values.get(_RATE), values.get(_UNITS)) or 1),
            issued_per_work_item=values.get(_ISSUED),
        )
        kept = [x for x in values if not x.startswith("sampled.") or x in _OF_SOURCE]
        values = {**{name: values[name] for name in kept}, **combine(source).as_dict()}
    units = _divide(values.get(_RATE), values.get(_UNITS))
    return values, {
        **pick(
            one, "seconds", keys="key", kernels="launch.kernel.label",
            devices="launch.device.id", problems="launch.problem_key", noise="runs.noise",
            work_groups="launch.work_group_count", samplers="sampler",
        ),
        "applications": "/".join(filter(None, (kernel.suite, kernel.application))),
        **pick(fit, "two_point_s", linear_s="seconds"),
        "linear_error": None if fit is None else fit.standard_error_s / fit.seconds,
        **pick(run, "sampling_s"),
        **read_peaks(machine),
        **({} if units is None else {"compute_units": float(round(units))}),
    }  # fmt: skip


def _divide(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below
