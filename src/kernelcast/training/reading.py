"""Reads observations from stores and Parquet files alike, and says which do not count."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from kernelcast.features.analysis import read_facts
from kernelcast.features.vector import CounterSource, StaticSource, combine
from kernelcast.launches.counting import count_from_source
from kernelcast.launches.data_folder import choose_store
from kernelcast.launches.data_store import open_data_store
from kernelcast.launches.problem_file import read_parameters, read_problem
from kernelcast.records.feature_vector import FeatureSchema, make_vector
from kernelcast.records.observation import Observation
from kernelcast.training_data.sources import SHIPPED, list_files, name_folders, read_file
from kernelcast.training_data.store import Selection
from kernelcast.training_data.store.schema import SOUND


def read_observations(
    sources: Sequence[str | Path] = (),
    *,
    devices: Sequence[str] = (),
    left_out: Counter[str] | None = None,
) -> Iterator[Observation]:
    """Read observations one by one, without first launches, outliers and those of busy machines."""
    wanted = Selection(devices=tuple(devices))
    for source in name_folders(sources) or (None,):
        files = [] if source is None else list_files(source)
        for path in files:
            found = read_file(path)
            rows = found.observations
            if found.kind == "table":
                rows = (_read_problem(one, path.parent) for one in rows)
            yield from _choose(rows, wanted, left_out)
        if files:
            continue
        with open_data_store(source, must_exist=True) as store:
            yield from _choose(store.find(wanted), wanted, left_out)


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
    problem = read_problem(folder / name, parameters=given)
    facts = read_facts(problem.kernel)
    counters = count_from_source(facts, problem, problem.ndrange)
    vector = combine(
        StaticSource(facts=facts, problem=problem), CounterSource(counters=counters, facts=facts)
    )
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


def _choose(
    found: Iterator[Observation], wanted: Selection, left_out: Counter[str] | None
) -> Iterator[Observation]:
    for one in found:
        flags = one.flags & SOUND.without_flags
        if wanted.devices and not one.launch.device.id.startswith(wanted.devices):
            continue
        if not flags:
            yield one
        elif left_out is not None:
            left_out[f"flagged as {', '.join(sorted(flags))}"] += 1
