"""What pages read, over PostgreSQL."""

from collections.abc import Iterator

import pytest

from kernelcast.predictor.reviewing.held_rows import read_held_rows
from kernelcast.predictor.service_state import open_state
from kernelcast.records.service_state import JobKind, JobState
from kernelcast.testing.page_examples import add_job, fill_store
from kernelcast.testing.postgresql_cluster import PostgresqlCluster, explain_absence


@pytest.fixture
def cluster() -> Iterator[PostgresqlCluster]:
    """Give a cluster with an empty database."""
    pytest.importorskip("psycopg", reason="pip install 'kernelcast[postgresql]'")
    absence = explain_absence()
    if absence:
        pytest.skip(absence)
    with PostgresqlCluster() as found:
        yield found


def test_newest_rows_and_light_lists(cluster: PostgresqlCluster) -> None:
    """The same as in SQLite: the newest rows oldest first, results only where they are wanted."""
    fill_store(cluster.url, launches=12)
    held = read_held_rows(cluster.url, most=4)
    assert held.total == 12
    moments = [one.when for one in held.rows if one.when is not None]
    assert len(moments) == 4
    assert moments == sorted(moments)
    with open_state(cluster.url) as state:
        add_job(state, JobKind.TRAIN, result={"models": [1]})
        add_job(state, JobKind.TRAIN, JobState.QUEUED)
        light = {one.state: one.result for one in state.jobs.list(with_results=False)}
        assert light == {JobState.DONE: True, JobState.QUEUED: None}
        whole = {one.state: one.result for one in state.jobs.list()}
        assert whole == {JobState.DONE: {"models": [1]}, JobState.QUEUED: None}
