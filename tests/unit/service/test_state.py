"""What was answered, observed and asked for is kept, whatever the database, and later forgotten."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import sqlalchemy as sa
import yaml
from fastapi.testclient import TestClient

from kernelcast.collection.data_rows import remove_by_hand
from kernelcast.launches.data_store import Selection, open_data_store
from kernelcast.records.observation import Origin
from kernelcast.records.service_state import JobKind, JobRecord, Scope
from kernelcast.service import ServiceSettings
from kernelcast.service.authentication import make_token
from kernelcast.service.pages.kernels import place_problems
from kernelcast.service_state import (
    AnswerFilter,
    AnswerRecord,
    ServiceState,
    Store,
    StoreError,
    make_id,
    open_state,
)
from kernelcast.service_state.state import ChangeTable, ProblemTable
from kernelcast.training_data.store import open_store
from support.observations import make_observation
from support.running_service import wait_until
from support.service_backend import (
    FIRST,
    FakeBackend,
    Plain,
    estimate,
    observe,
    open_client,
    service_of,
)

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)  # a Wednesday


def _make(number: int = 0, **more: Any) -> AnswerRecord:  # noqa: ANN401 - fields of any kind
    given: Plain = {
        "id": make_id(NOW + timedelta(seconds=number)), "launch_key": f"l{number}",
        "problem_digest": "p", "problem": "p", "kernel": "k", "device_id": "d",
        "global_size": (64, 2), "local_size": (64, 1), "tier": "linear", "seconds": 1.0,
        "low": 0.5, "high": 2.0, "coverage": 0.9, "slowdown": 1.0, "cost_s": 0.25, "caller": "c",
    }  # fmt: skip
    return AnswerRecord(**{**given, **more})


def test_answers_come_back_newest_first_in_parts(state: ServiceState) -> None:
    """As they were; filters are by kernel, device, tier, size, time and what was observed."""
    given = [_make(number, kernel=f"k{number % 2}") for number in range(6)]
    state.answers.write(given, {}, [("l3", 1.5, NOW)])
    find = state.answers.find
    whole = find(AnswerFilter(), most=100)
    assert [one.id for one in whole] == sorted((one.id for one in given), reverse=True)
    assert whole[0] == given[5]
    assert whole[0].at == NOW + timedelta(seconds=5)
    assert find(AnswerFilter(), most=4, before=whole[1].id) == whole[2:]
    for wanted, count in (
        (AnswerFilter(kernels=("k1",)), 3),
        (AnswerFilter(devices=("other",)), 0),
        (AnswerFilter(tiers=("linear",), global_sizes=((64, 2),)), 6),
        (AnswerFilter(global_sizes=((64,),)), 0),
        (AnswerFilter(is_observed=True), 1),
        (AnswerFilter(given_from=NOW + timedelta(seconds=4)), 2),
        (AnswerFilter(given_before=NOW + timedelta(seconds=4)), 4),
    ):
        assert len(find(wanted, most=100)) == count, wanted


def test_sums_tell_error_coverage_and_cost(state: ServiceState) -> None:
    """By any of week, device, kernel and tier; repeats count as answers and cost nothing."""
    first = _make(0, slowdown=2.0)
    later = _make(1, id=make_id(NOW + timedelta(days=7)), tier="history", cost_s=0.75)
    state.answers.write([first, later], {}, [])
    compared = state.answers.write([], {first.id: 4}, [("l0", 4.0, NOW), ("l0", 8.0, NOW),
                                                       ("unknown", 1.0, NOW)])  # fmt: skip
    assert [(one.error, one.is_inside) for one in compared] == [(0.5, True), (0.75, False)]
    (row,) = state.answers.sum_up(("device_id",), AnswerFilter())
    assert row == {
        "device_id": "d", "asked": 6, "made": 2, "observed": 2, "error": pytest.approx(0.625),
        "ratio": pytest.approx(0.5 ** 1.5), "coverage": 0.5, "cost_s": pytest.approx(0.5),
        "cost_share": pytest.approx(0.5),
    }  # fmt: skip
    weeks = state.answers.sum_up(("week", "tier"), AnswerFilter())
    assert [(one["week"].day, one["tier"]) for one in weeks] == [(15, "history"), (8, "linear")]
    recent = AnswerFilter(given_from=NOW + timedelta(days=6))
    assert [one["tier"] for one in state.answers.sum_up(("tier",), recent)] == ["history"]
    (kept,) = state.answers.find(AnswerFilter(is_observed=True), most=9)
    assert (kept.asked, kept.observed, kept.measured_s) == (5, 2, 8.0)


def test_old_and_many_answers_are_forgotten(state: ServiceState) -> None:
    """By age and by number; weeks that are over with them."""
    state.answers.write([_make(number) for number in range(10)], {}, [])
    assert state.answers.prune(most=4, before=NOW - timedelta(days=1)) == 6
    assert len(state.answers.find(AnswerFilter(), most=99)) == 4
    assert state.answers.prune(most=4, before=NOW + timedelta(days=30)) == 4
    assert state.answers.sum_up(("kernel",), AnswerFilter()) == []


def test_indexes_find_what_pages_show(state: ServiceState) -> None:
    """No part of a list is found by a look at every row or a sort of them."""
    asked: list[str] = []

    def note(_c: object, _k: object, statement: str, parameters: Any, *_: object) -> None:  # noqa: ANN401
        plan = state.engine.raw_connection().execute(  # type: ignore[attr-defined]
            f"EXPLAIN QUERY PLAN {statement}", parameters
        )
        asked.extend(str(row[3]) for row in plan)

    sa.event.listen(state.engine, "before_cursor_execute", note)
    state.answers.find(AnswerFilter(), most=5, before=3)
    state.answers.find(AnswerFilter(kernels=("k",)), most=5)
    state.answers.find(AnswerFilter(devices=("d",)), most=5)
    state.answers.list_observations(Selection(), most=5, after=(3, "a"))
    before = len(asked)
    state.answers.list_observations(Selection(origins=(Origin.OBSERVED,)), most=5)
    assert all("(origin=?" in one for one in asked[before:])
    before = len(asked)
    state.answers.list_observations(Selection(), most=5, after=(3, "a"), global_size=(8, 4))
    state.answers.count_observations(Selection(), (8, 4))
    assert all("ix_observations_size" in one for one in asked[before:])
    assert asked
    assert not [one for one in asked if "TEMP B-TREE" in one]
    assert all("USING" in one or "service_answers" in one for one in asked if "SCAN" in one)


def test_a_device_is_fastest_only_where_intervals_tell() -> None:
    """Intervals beside other programs count; the newest answer of each device does."""
    answers = [
        _make(9, device_id="a"),
        _make(8, device_id="b", seconds=0.75, low=0.5, high=1.0, slowdown=2.0),
        _make(7, device_id="c", seconds=9.0, low=8.0, high=10.0),
        _make(6, device_id="a", seconds=50.0), _make(5, problem_digest="alone"),
    ]  # fmt: skip
    (placed,) = place_problems(answers)
    verdicts = {device: verdict for device, (_, verdict) in placed.items()}
    assert verdicts == {"a": "shortest", "b": "cannot be told apart", "c": ""}
    (placed,) = place_problems([answers[0], answers[2]])
    assert placed["a"][1] == "fastest"


def test_a_service_keeps_what_it_answers(
    settings: ServiceSettings, backend: FakeBackend, problem: Plain
) -> None:
    """Over a restart; repeats are counted, and flagged observations compared with nothing."""
    # A refinement, which a slow machine has time for, would be an answer of its own.
    with open_client(settings, backend, refine_share=0.0) as client:
        seconds = estimate(client, problem)["seconds"]
        assert estimate(client, problem)["is_kept"]
        report = {"problem": problem, "device": FIRST, "seconds": 1.2 * seconds}
        batch = [{**report, "key": "a"}, {**report, "key": "b", "is_contaminated": True}]
        for _ in range(2):
            observe(client, *batch)
        client.get("/v1/answers")
        text = client.get("/metrics").text
    line = 'kernelcast_predictions_total{device_id="fake-device-0000",inside="true",tier="linear"}'
    assert f"{line} 1.0" in text
    with open_client(settings) as client:
        (kept,) = client.get("/v1/answers").json()["answers"]
        assert (kept["asked"], kept["observed"]) == (2, 1)
        assert kept["error"] == pytest.approx(1 / 6)
        (row,) = client.get("/v1/accuracy", params={"by": "tier"}).json()["rows"]
        assert (row["tier"], row["observed"], row["coverage"]) == ("linear", 1, 1.0)


def test_answers_wait_for_the_database(
    settings: ServiceSettings, backend: FakeBackend, problem: Plain,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A database that is away costs no answer; /ready is 503 while it cannot be written."""
    fail = Mock(side_effect=StoreError("disk full"))
    with open_client(settings, backend, refine_share=0.0) as client:
        service = service_of(client)
        assert client.portal is not None
        with monkeypatch.context() as away:
            away.setattr(service.state.answers, "write", fail)
            for _ in range(2):
                estimate(client, problem)
                client.portal.call(service.answers.flush)
            away.setattr(service.state.changes, "count", fail)
            assert client.get("/ready").status_code == 503
        # What was stored is not stored again where old ones cannot be forgotten.
        monkeypatch.setattr(service.state.answers, "prune", fail)
        assert client.get("/ready").status_code == 200
        for _ in range(2):
            (kept,) = client.get("/v1/answers").json()["answers"]
            assert kept["asked"] == 2
        text = client.get("/metrics").text
        for where in ("answers", "requests"):
            assert f'kernelcast_database_failures_total{{where="{where}"}}' in text


def test_observations_are_listed_by_time_in_parts(
    client: TestClient, settings: ServiceSettings
) -> None:
    """Whenever they were stored: imports of old rows push none of the new ones away."""
    rows = [make_observation(number) for number in range(7)]
    undated = replace(rows[0], measurement="undated", measured_at=None)
    with open_data_store(str(settings.database)) as store:
        store.add_many([*rows[::-1], undated])
    found: list[Plain] = []
    params: Plain = {"limit": 3}
    while len(found) < 8:
        part = client.get("/v1/observations", params=params).json()
        assert part["count"] == 8
        found += part["observations"]
        params["next"] = part["next"]
    assert part["next"] is None
    times = [one["measured_at"] for one in found]
    assert times == [*sorted(filter(None, times), reverse=True), None]
    assert len({one["key"] for one in found}) == 8
    wanted = found[0]["global_size"]
    size = {"global_size": ",".join(map(str, wanted))}
    sized = client.get("/v1/observations", params=size).json()
    assert [one["global_size"] for one in sized["observations"]] == [wanted] * sized["count"]


def _report(problem: Plain, key: str, **more: object) -> Plain:
    return {"key": key, "problem": problem, "device": FIRST, "seconds": 0.5, **more}


def test_other_observations_leave_an_answer_as_it_is(
    client: TestClient, backend: FakeBackend, problem: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is observed of another launch costs no sampling of this one."""
    looks: list[int] = []
    look = backend.generation
    monkeypatch.setattr(backend, "generation", lambda: (looks.append(1), look())[1])
    estimate(client, problem)
    observe(client, _report({**problem, "global_size": [128]}, "a"))
    seen = len(looks) + 2  # the first may have begun before
    wait_until(lambda: len(looks), lambda count: count >= seen)
    assert estimate(client, problem)["tier"] == "linear"
    assert backend.calls["sample"] == 1


def test_a_store_that_is_away_is_told(
    client: TestClient, problem: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 and Retry-After, nothing acknowledged; kept answers still come."""
    estimate(client, problem)
    fail = Mock(side_effect=StoreError("the server does not answer"))
    monkeypatch.setattr(Store, "add_many", fail)
    monkeypatch.setattr(ChangeTable, "read", fail)
    refused = client.post("/v1/observations", json={"observations": [_report(problem, "a")]})
    assert estimate(client, problem)["is_kept"]
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "database_unavailable")
    assert "retry-after" in refused.headers


def test_what_is_removed_at_a_terminal_is_noticed(
    client: TestClient, settings: ServiceSettings, problem: Plain
) -> None:
    """The service's answers follow, and its audit log says so."""
    observe(client, *(_report(problem, key, seconds=3e-5) for key in ("a", "b")))
    assert estimate(client, problem)["tier"] == "history"
    with open_data_store(settings.database) as store:
        assert remove_by_hand(store, Selection(kernels=("fill",)), 2) == 2
    wait_until(lambda: estimate(client, problem)["tier"], lambda tier: tier == "linear")
    (entry,) = client.get("/v1/audit").json()["entries"]
    assert entry["actor"].startswith("command line: ")
    assert entry["detail"] == {"kernels": ["fill"]}


DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def place(settings: ServiceSettings) -> str:
    return str(settings.database)


def test_it_lives_beside_observations(place: str) -> None:
    """Either may be opened first, and by several at once: one makes the tables, others wait."""
    with ThreadPoolExecutor(4) as pool:
        for one in pool.map(lambda _: open_state(place), range(4)):
            one.close()
    with open_state(place), open_store(place) as store:
        assert store.count() == 0


def test_older_tables_are_brought_up_to_date_and_newer_ones_left_alone(place: str) -> None:
    """What was in them stays; answers, their sums and the order of observations are added."""
    _, record = make_token("somebody", frozenset({Scope.ESTIMATE}))
    with open_state(place) as state:
        state.tokens.add(record)
    engine = sa.create_engine(f"sqlite:///{place}")
    with engine.begin() as connection:
        for statement in (
            "DROP TABLE service_answers", "DROP TABLE service_answer_weeks",
            "DROP INDEX ix_observations_measured", "DROP INDEX ix_observations_flagged",
            "DROP INDEX ix_observations_origin", "DROP INDEX ix_observations_size",
            "UPDATE kernelcast_service_version SET version_num = '0001'",
        ):  # fmt: skip
            connection.execute(sa.text(statement))
    with open_state(place) as state:
        assert state.tokens.list() == [record]
        assert state.answers.find(AnswerFilter(), most=1) == []
    names = {f"ix_observations_{name}" for name in ("measured", "flagged", "origin", "size")}
    with engine.begin() as connection:
        assert names <= {*connection.scalars(sa.text("SELECT name FROM sqlite_master"))}
        connection.execute(sa.text("UPDATE kernelcast_service_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="update kernelcast"):
        open_state(place)


def test_tables_have_the_columns_that_were_released(place: str, state: ServiceState) -> None:
    """They follow from records, whose fields may be renamed: databases that are in use may not."""
    del state
    inspector = sa.inspect(sa.create_engine(f"sqlite:///{place}"))
    columns = {
        name: {
            one["name"]: f"{one['type']}{'' if one['nullable'] else ' not null'}"
            for one in inspector.get_columns(name)
        }
        for name in inspector.get_table_names()
        if name.startswith("service_")
    }
    released = yaml.safe_load((DATA / "service_tables.yaml").read_text(encoding="utf-8"))
    assert columns == released


def test_problems_are_forgotten_oldest_first(place: str, state: ServiceState) -> None:
    """When there are too many."""
    table = ProblemTable(state, most=10)
    for number in (*range(30), 29):  # what is known changes nothing
        table.add(f"{number:064x}", "{}")
    kept = [number for number in range(30) if table.find(f"{number:064x}") == "{}"]
    assert 1 <= len(kept) <= 10
    assert kept == list(range(30 - len(kept), 30))


def test_one_of_several_claims_a_job(state: ServiceState) -> None:
    """The others get the next one or none."""
    job = JobRecord(id="0", kind=JobKind.TRAIN, options={}, created_at=datetime.now(UTC))
    for number in range(3):
        state.jobs.add(replace(job, id=str(number)))
    with ThreadPoolExecutor(4) as pool:
        claimed = pool.map(lambda n: state.jobs.claim(f"host-{n}", ()), range(5))
    assert sorted(one.id for one in claimed if one is not None) == ["0", "1", "2"]
