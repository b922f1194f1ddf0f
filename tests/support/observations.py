"""Observations for tests: ready-made ones, and hypothesis strategies."""

import random
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa
from hypothesis import strategies as st

from kernelcast.records.feature_vector import FeatureSchema, make_vector
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.observation import (
    FailureRecord,
    MachineState,
    Observation,
    ObservationFlag,
    Origin,
    RunTimes,
    SampleSet,
    summarise_runs,
)
from kernelcast.records.problem import (
    DeviceIdentity,
    KernelIdentity,
    LaunchIdentity,
    digest_text,
)
from kernelcast.records.samples import TimedLaunch
from kernelcast.training_data.store.schema import FEATURE_SCHEMAS, dump, observation_to_row
from support.strategies import disjoint_boxes, ndranges

SCHEMA = FeatureSchema(
    names=("static.work_items_count", "static.buffer_bytes", "counters.flops_per_work_item"),
    version=1,
)
"""Features that the observations of this module have."""
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def make_launch(number: int, *, kernels: int = 7, devices: int = 3) -> LaunchIdentity:
    """Make the launch of a number; numbers go round the kernels and the devices."""
    kernel = f"kernel{number % kernels}"
    return LaunchIdentity(
        kernel=KernelIdentity(
            name=kernel,
            digest=digest_text(kernel),
            application=f"application{number % kernels // 2}",
            suite="suite",
        ),
        device=DeviceIdentity(
            id=f"device-{number % devices}", name="A device", platform="A platform", driver="1.0"
        ),
        ndrange=NDRange(global_size=(64 * (number + 1000),), local_size=(64,)),
        arguments_digest=digest_text(str(number)),
        parameters={"N": 64 * (number + 1000)},
    )


def make_observation(
    number: int, *, kernels: int = 7, devices: int = 3, schema: FeatureSchema = SCHEMA
) -> Observation:
    """Make an observation that the check of a store finds nothing wrong with."""
    launch = make_launch(number, kernels=kernels, devices=devices)
    rng = random.Random(number)
    whole_s = 0.1 + 0.001 * number
    boxes = [GroupBox(start=(start,), shape=(shape,)) for start, shape in ((0, 4), (10, 6))]
    return Observation(
        launch=launch,
        runs=summarise_runs([whole_s * rng.uniform(0.99, 1.01) for _ in range(5)]),
        features=make_vector({name: rng.uniform(1, 9) for name in schema.names}, schema),
        samples=(
            SampleSet(
                multiple=1,
                window_set=0,
                launches=tuple(
                    TimedLaunch(box=box, window=0, duration_s=1e-4 * box.work_group_count)
                    for box in boxes
                ),
                launch_overhead_s=1e-6,
                is_even=True,
                linear_s=whole_s,
            ),
        ),
        machine_state=MachineState(load=0.1, governor="performance"),
        versions={"kernelcast": "0.1.0", "runtime": "1.0"},
        measured_at=_BEGIN + timedelta(seconds=number),
    )


def make_failure(number: int) -> FailureRecord:
    return FailureRecord(
        launch=make_launch(number),
        kind="KernelRunError",
        message="the kernel crashed its driver",
        failed_at=_BEGIN + timedelta(seconds=number),
    )


def lose_index_entries(path: Path) -> None:
    """Remove a row of a SQLite store behind the back of one of its indexes."""
    for step in (
        [
            "CREATE TABLE aside AS SELECT * FROM sqlite_schema "
            "WHERE name = 'ix_observations_kernel'",
            "DELETE FROM sqlite_schema WHERE name = 'ix_observations_kernel'",
        ],
        ["DELETE FROM observations WHERE key = (SELECT min(key) FROM observations)"],
        ["INSERT INTO sqlite_schema SELECT * FROM aside"],
        ["DROP TABLE aside"],
    ):
        with sqlite3.connect(path) as connection:  # reads the schema anew each time
            connection.execute("PRAGMA writable_schema = ON")
            for command in step:
                connection.execute(command)
        connection.close()


def insert_as_then(engine: sa.Engine, rows: Sequence[Observation]) -> None:
    """Write rows as the version of a store's tables did, which may have known fewer columns."""
    table = sa.Table("observations", sa.MetaData(), autoload_with=engine)
    names = set(table.columns.keys())
    with engine.begin() as connection:
        schemas = {one.features.schema for one in rows if one.features}
        connection.execute(sa.insert(FEATURE_SCHEMAS), [
            {"id": one.id, "version": one.version, "names": dump(one.names)} for one in schemas
        ])  # fmt: skip
        for one in rows:
            row = observation_to_row(one)
            connection.execute(sa.insert(table), {key: row[key] for key in names if key in row})


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    """Draw observations with anything that a record allows."""
    ndrange = draw(st.none() | ndranges())
    times = st.floats(1e-9, 1e6)
    samples = []
    if ndrange is not None:
        for window_set in range(draw(st.integers(0, 2))):
            launches = tuple(
                TimedLaunch(
                    box=box,
                    window=draw(st.integers(-1, 5)),
                    duration_s=draw(times),
                    weight=draw(st.just(1.0) | st.floats(0.02, 50)),
                    clock_s=draw(st.none() | times),
                )
                for box in draw(disjoint_boxes(ndrange))
            )
            samples.append(SampleSet(
                multiple=draw(st.integers(0, 6)), window_set=window_set, launches=launches,
                launch_overhead_s=draw(st.floats(0, 1)), is_even=draw(st.booleans()),
                linear_s=draw(st.none() | times), overhead_s=draw(st.floats(0, 1)),
                imbalance=draw(st.floats(1, 4)),
            ))  # fmt: skip
    texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
    values = st.dictionaries(st.sampled_from(SCHEMA.names), st.floats(-1e300, 1e300))
    parameters = st.dictionaries(texts, st.integers(-(2**60), 2**60) | st.floats(-1, 1) | texts)
    return Observation(
        launch=LaunchIdentity(
            kernel=KernelIdentity(
                name=draw(texts.filter(bool)), digest=digest_text(draw(texts)),
                application=draw(texts), suite=draw(texts),
            ),
            device=DeviceIdentity(id=draw(texts.filter(bool)), name=draw(texts),
                                  platform=draw(texts), driver=draw(texts)),
            ndrange=ndrange,
            arguments_digest=digest_text(draw(texts)),
            parameters=draw(parameters),
        ),
        runs=draw(st.builds(RunTimes, median_s=times, noise=st.none() | st.floats(0, 9),
                            run_count=st.integers(1, 99))
                  | st.lists(times, min_size=1, max_size=5).map(summarise_runs)),
        features=draw(st.none() | values.map(lambda found: make_vector(found, SCHEMA))),
        samples=tuple(samples),
        origin=draw(st.sampled_from(Origin)),
        source=draw(texts),
        measurement=draw(texts),
        flags=frozenset(draw(st.sets(st.sampled_from(ObservationFlag)))),
        machine_state=MachineState(load=draw(st.none() | st.floats(0, 99)),
                                   governor=draw(st.none() | texts)),
        versions=draw(st.dictionaries(texts, texts, max_size=2)),
        measured_at=draw(st.none() | st.datetimes(timezones=st.just(UTC))),
    )  # fmt: skip
