"""What the service remembers survives, whatever the database is."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
import yaml

from kernelcast.records.service_state import JobKind, JobRecord, Scope
from kernelcast.service import ServiceSettings
from kernelcast.service.authentication import make_token
from kernelcast.service_state import AnswerFilter, ServiceState, open_state
from kernelcast.service_state.state import ProblemTable
from kernelcast.training_data.store import StoreError, open_store

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def place(settings: ServiceSettings) -> str:
    """Give the file of the database."""
    return str(settings.database)


def test_it_lives_beside_observations(place: str) -> None:
    """Either may be opened first, and by several at once: one makes the tables, others wait."""
    with ThreadPoolExecutor(4) as pool:
        for one in pool.map(lambda _: open_state(place), range(4)):
            one.close()
    with open_state(place), open_store(place) as store:
        assert store.count() == 0


def test_tables_of_the_first_version_are_brought_up_to_date(place: str) -> None:
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
    with engine.connect() as connection:
        assert names <= {*connection.scalars(sa.text("SELECT name FROM sqlite_master"))}


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


def test_tables_of_a_newer_version_are_left_alone(place: str) -> None:
    """With what to do."""
    open_state(place).close()
    with sa.create_engine(f"sqlite:///{place}").begin() as connection:
        connection.execute(sa.text("UPDATE kernelcast_service_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="update kernelcast"):
        open_state(place)


def test_problems_are_forgotten_oldest_first(place: str, state: ServiceState) -> None:
    """When there are too many."""
    table = ProblemTable(state, most=10)
    for number in range(30):
        table.add(f"{number:064x}", "{}")
    table.add(f"{29:064x}", "{}")  # known: nothing changes
    assert table.find(f"{29:064x}") == "{}"
    assert table.find(f"{0:064x}") is None
    kept = [number for number in range(30) if table.find(f"{number:064x}")]
    assert len(kept) <= 10
    assert kept == list(range(30 - len(kept), 30))


def test_one_of_several_claims_a_job(state: ServiceState) -> None:
    """The others get the next one or none."""
    job = JobRecord(id="0", kind=JobKind.TRAIN, options={}, created_at=datetime.now(UTC))
    for number in range(3):
        state.jobs.add(replace(job, id=str(number)))
    with ThreadPoolExecutor(4) as pool:
        claimed = pool.map(lambda n: state.jobs.claim(f"host-{n}", ()), range(5))
    assert sorted(one.id for one in claimed if one is not None) == ["0", "1", "2"]
