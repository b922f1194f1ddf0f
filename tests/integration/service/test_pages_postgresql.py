"""What pages read, over PostgreSQL."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kernelcast.launches.data_store import open_data_store
from kernelcast.records.service_state import JobKind, JobState
from kernelcast.reports.accuracy.held_launches import read_held_launches
from kernelcast.service_state import open_state
from support.observations import make_observation
from support.page_examples import add_job, fill_store
from support.postgresql_cluster import PostgresqlCluster, explain_absence


@pytest.fixture
def cluster() -> Iterator[PostgresqlCluster]:
    """Give a cluster with an empty database."""
    pytest.importorskip("psycopg", reason="pip install 'kernelcast[postgresql]'")
    absence = explain_absence()
    if absence:
        pytest.skip(absence)
    with PostgresqlCluster() as found:
        yield found


def test_newest_launches_and_light_lists(cluster: PostgresqlCluster) -> None:
    """The same as in SQLite: launches measured last first, results only where they are wanted."""
    fill_store(cluster.url, launches=12)
    with open_data_store(cluster.url) as store:
        held = read_held_launches(store, most=4)
        assert {one.key for one in held.launches} <= {
            make_observation(number).launch.key for number in range(12)
        }
        assert len(held.launches) == 4
        assert not held.is_whole
        again = replace(make_observation(3), measurement="again", measured_at=datetime.now(UTC))
        store.add(again)
        after = read_held_launches(store, held, most=4)
    assert after.launches[0].key == make_observation(3).launch.key
    assert after.launches[0].observations == 2
    assert after.launches[0].remembered is not None
    with open_state(cluster.url) as state:
        add_job(state, JobKind.TRAIN, result={"models": [1]})
        add_job(state, JobKind.TRAIN, JobState.QUEUED)
        light = {one.state: one.result for one in state.jobs.list(with_results=False)}
        assert light == {JobState.DONE: True, JobState.QUEUED: None}
        whole = {one.state: one.result for one in state.jobs.list()}
        assert whole == {JobState.DONE: {"models": [1]}, JobState.QUEUED: None}
