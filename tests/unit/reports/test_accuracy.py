"""Predictions beside measured times, as pages show them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.launches.data_store import open_data_store
from kernelcast.models.persistence import ModelRegistry
from kernelcast.models.time_models import make_model
from kernelcast.records.observation import Observation, ObservationFlag, Origin
from kernelcast.records.observed_times import RunTimes
from kernelcast.reports.accuracy import model_answers
from kernelcast.reports.accuracy.held_launches import (
    HeldLaunches,
    read_held_launches,
    read_kernel_launches,
)
from kernelcast.reports.accuracy.judging import find_ablation, read_report
from kernelcast.reports.accuracy.model_answers import (
    ModelAnswers,
    list_used_models,
    open_model,
)
from kernelcast.training.settings import ALL_ROWS, ValidationSettings
from kernelcast.training.table import load_training_table
from kernelcast.training.validating import validate_models
from kernelcast.training_data.store import Store
from support.observations import make_observation
from support.page_examples import make_validation

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def _observe(seconds: Sequence[float]) -> list[Observation]:
    """Make observations of one launch, a minute apart."""
    first = replace(make_observation(0), samples=(), features=None, origin=Origin.OBSERVED)
    return [
        replace(
            first,
            measurement=str(place),
            runs=RunTimes(median_s=one),
            measured_at=BEGIN + timedelta(minutes=place),
        )
        for place, one in enumerate(seconds)
    ]


def _fill(path: Path, observations: Sequence[Observation]) -> str:
    with open_data_store(path) as store:
        store.add_many(observations)
    return str(path)


def _read(path: Path, observations: Sequence[Observation], *, most: int = 9) -> HeldLaunches:
    with open_data_store(_fill(path, observations)) as store:
        return read_held_launches(store, most=most)


def test_one_launch_is_one_however_often_it_was_observed(tmp_path: Path) -> None:
    """With the median and the noise of its newest 20 observations, and the time of the newest."""
    times = [0.5] * 200 + [0.1 * (1 + 0.001 * place) for place in range(20)]
    (one,) = _read(tmp_path / "rows.sqlite", _observe(times)).launches
    assert one.observations == 20
    assert one.seconds == pytest.approx(0.1 * 1.0095)
    assert one.noise == pytest.approx(0.1 * 0.017 / 2 / one.seconds)
    assert one.when == BEGIN + timedelta(minutes=219)


def test_a_single_observation_has_the_noise_of_its_runs(tmp_path: Path) -> None:
    """And nobody remembers anything of it."""
    one = make_observation(1)
    (found,) = _read(tmp_path / "rows.sqlite", [one]).launches
    assert found.noise == one.runs.noise
    assert found.remembered is None
    assert (found.sampled_key, found.linear_s) == (one.key, one.samples[0].linear_s)


def test_the_newest_observation_is_told_by_those_before_it(tmp_path: Path) -> None:
    """It is not among what tells it; a lasting shift is found where it becomes certain."""
    times = [0.1, 0.101, 0.099, 0.1, 0.1, 0.12]
    (one,) = _read(tmp_path / "rows.sqlite", _observe(times)).launches
    assert one.remembered is not None
    assert one.remembered.measured_s == 0.12
    assert one.remembered.answer.seconds == pytest.approx(0.1)
    assert one.shifted_at is None
    shifted = [0.1, 0.101, 0.099, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2, 0.2]
    (one,) = _read(tmp_path / "shifted.sqlite", _observe(shifted)).launches
    assert one.shifted_at is not None
    assert one.shifted_at > BEGIN + timedelta(minutes=5)
    assert one.remembered is not None
    assert one.remembered.answer.seconds == pytest.approx(0.2)


def test_first_launches_and_busy_machines_are_not_judged(tmp_path: Path) -> None:
    """Imported rows neither."""
    first, busy, sound, imported = _observe([0.5, 0.4, 0.1, 0.2])
    held = _read(
        tmp_path / "rows.sqlite",
        [
            replace(first, flags=frozenset({ObservationFlag.FIRST_LAUNCH})),
            replace(busy, flags=frozenset({ObservationFlag.CONTAMINATED})),
            sound,
            replace(imported, origin=Origin.IMPORTED),
        ],
    )
    assert [(one.seconds, one.observations) for one in held.launches] == [(0.1, 1)]
    assert held.devices == ("device-0",)


def test_a_launch_without_a_known_time_is_read_too(tmp_path: Path) -> None:
    """Those that changed last come first, and no more than asked for."""
    rows = [replace(make_observation(number), measured_at=None) for number in range(5)]
    held = _read(tmp_path / "rows.sqlite", rows, most=3)
    assert [one.key for one in held.launches] == [rows[place].launch.key for place in (4, 3, 2)]
    assert not held.is_whole
    assert held.launches[0].when is None


def test_launches_measured_long_ago_push_none_off(tmp_path: Path) -> None:
    """Whatever is stored when: the newest by its time is first; a kernel's own are all found."""
    rows = [
        replace(make_observation(number), measured_at=BEGIN + timedelta(minutes=number))
        for number in range(6)
    ]
    with open_data_store(_fill(tmp_path / "rows.sqlite", rows[4:])) as store:
        held = read_held_launches(store, most=3)
        store.add_many(rows[:4])
        for known in (held, HeldLaunches()):
            found = read_held_launches(store, known, most=3)
            assert [one.key for one in found.launches] == [
                rows[place].launch.key for place in (5, 4, 3)
            ]
        oldest = rows[0].launch.kernel
        (own,) = [
            one for one in read_kernel_launches(store, oldest.label)
            if one.key == rows[0].launch.key
        ]  # fmt: skip
        assert own.when == BEGIN
        assert read_kernel_launches(store, f"other/{oldest.name}") == ()


def _count(store: Store, known: HeldLaunches) -> tuple[HeldLaunches, int, int]:
    """Read what has changed; count the statements and the rows that come back."""
    statements = rows = 0
    select = store.select

    def watch(query: Any) -> list[Any]:  # noqa: ANN401 - any query
        nonlocal statements, rows
        found = select(query)
        statements, rows = statements + 1, rows + len(found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "select", watch)
        held = read_held_launches(store, known)
    return held, statements, rows


def test_only_launches_that_have_changed_are_read(tmp_path: Path) -> None:
    """One statement where nothing has, five where something has, whatever else the store holds."""
    many = [make_observation(number) for number in range(200)]
    hot = _observe([0.1 + 0.0001 * place for place in range(1000)])
    with open_data_store(_fill(tmp_path / "rows.sqlite", [*many, *hot])) as store:
        held = read_held_launches(store)
        again, statements, rows = _count(store, held)
        assert again is held
        assert (statements, rows) == (1, 1)
        store.add(replace(hot[0], measurement="new", measured_at=BEGIN + timedelta(days=1)))
        after, statements, rows = _count(store, held)
        assert statements == 5
        assert rows < 20
        assert after.launches[0].when == BEGIN + timedelta(days=1)
        assert after == replace(read_held_launches(store), launches=after.launches)
        assert {*after.launches} == {*read_held_launches(store).launches}


@given(steps=st.lists(st.tuples(st.sampled_from(["add", "remove", "replace", "busy", "import"]),
                                st.integers(0, 7)), max_size=25))  # fmt: skip
@settings(deadline=None, max_examples=25)
def test_what_is_kept_is_what_a_whole_look_finds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """After any changes, with more launches than are looked at or fewer."""
    with open_data_store(tmp_path_factory.mktemp("rows") / "rows.sqlite") as store:
        held = {most: read_held_launches(store, most=most) for most in (3, 100)}
        for place, (step, number) in enumerate(steps):
            when = BEGIN + timedelta(minutes=place * 7 % 5)
            one = replace(make_observation(number), measurement=str(place % 4), measured_at=when)
            if step == "remove":
                store.remove([row.key for row in store.history(one.launch.key)[:2]])
            elif step == "busy":
                store.add(replace(one, flags=frozenset({ObservationFlag.CONTAMINATED})))
            elif step == "import":
                store.add(replace(one, origin=Origin.IMPORTED))
            else:
                runs = RunTimes(median_s=0.1 + place)
                store.add(replace(one, runs=runs), replace=step == "replace")
            for most, known in held.items():
                held[most] = read_held_launches(store, known, most=most)
                whole = read_held_launches(store, most=most)
                assert held[most] == whole
                assert len(whole.launches) <= most


def test_a_store_that_was_put_back_is_read_anew(tmp_path: Path) -> None:
    """Nothing of what was known of the newer one stays."""
    with open_data_store(_fill(tmp_path / "new.sqlite", _observe([0.1] * 5))) as store:
        held = read_held_launches(store)
    with open_data_store(_fill(tmp_path / "old.sqlite", [make_observation(9)])) as store:
        after = read_held_launches(store, held)
        assert after == read_held_launches(store)


def _sampled(number: int) -> Observation:
    one = make_observation(number)
    return replace(one, samples=(replace(one.samples[0], multiple=0),))


def test_a_model_is_asked_about_what_it_has_not_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held-out answers of the validation for the rest; nothing of a model without one."""
    monkeypatch.setattr(model_answers, "find_shipped", lambda: str(tmp_path / "none"))
    old = [_sampled(number) for number in range(0, 30, 3)]
    database = _fill(tmp_path / "rows.sqlite", old)
    table = load_training_table([database])
    settings = ValidationSettings(models=("linear",), rows=ALL_ROWS, jobs=1)
    report = validate_models(table, settings)
    fitted = make_model("linear").fit(table)
    registry = ModelRegistry(url=str(tmp_path / "models"))
    registry.publish("linear/device-0", fitted, report)
    registry.publish("linear/other", fitted)
    known, unknown = (open_model(one, registry.url) for one in list_used_models(registry.url))
    assert (known.kind, known.devices) == ("linear", ("device-0",))
    new = _sampled(33)
    # Another observation of a launch that was learned from, with samples of its own.
    again = replace(old[1], measurement="again", measured_at=BEGIN + timedelta(days=9))
    _fill(tmp_path / "rows.sqlite", [new, again])
    with open_data_store(database) as store:
        launches = read_held_launches(store).launches
        found, failures = ModelAnswers().read([known, unknown], store, launches)
    answers = found["linear"]
    assert not failures
    assert {*answers} == {one.launch.key for one in (*old, new)}
    for one in old[:2]:
        held_out = report.rows.models[0].seconds[report.rows.keys.index(one.key)]
        assert answers[one.launch.key].seconds == held_out
    told = answers[new.launch.key]
    assert told.low <= told.seconds <= told.high


def test_a_model_is_asked_once_about_a_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it said of launches that have not changed is kept; no other observation is read."""
    monkeypatch.setattr(model_answers, "find_shipped", lambda: str(tmp_path / "none"))
    database = _fill(tmp_path / "rows.sqlite", [_sampled(number) for number in range(0, 30, 3)])
    table = load_training_table([database])
    report = validate_models(table, ValidationSettings(models=("linear",), rows=ALL_ROWS, jobs=1))
    registry = ModelRegistry(url=str(tmp_path / "models"))
    registry.publish("linear/device-0", make_model("linear").fit(table), report)
    model = open_model(list_used_models(registry.url)[0], registry.url)
    read: list[str] = []
    ask = model_answers._read_table
    monkeypatch.setattr(
        model_answers, "_read_table",
        lambda store, keys: (read.extend(keys), ask(store, keys))[1],
    )  # fmt: skip
    asked = ModelAnswers()
    for number in (33, 36):
        _fill(tmp_path / "rows.sqlite", [_sampled(number)])
        with open_data_store(database) as store:
            asked.read([model], store, read_held_launches(store).launches)
    assert read == [_sampled(33).key, _sampled(36).key]


def test_an_ablation_is_found_in_a_validation() -> None:
    """The hybrid without a group, less the hybrid."""
    report = read_report(make_validation())
    (one,) = find_ablation(report)
    assert (one.group, one.device) == ("analytic", "device-0")
    assert one.difference == pytest.approx(one.error_without - one.error)
    assert one.low is not None
    assert one.high is not None
    assert one.low <= one.difference <= one.high
