"""What pages read, over PostgreSQL."""

from collections.abc import Iterator

import pytest

from kernelcast.records.service_state import JobKind, JobState
from kernelcast.service_state import open_state
from support.page_examples import add_job
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


def test_light_lists_of_jobs(cluster: PostgresqlCluster) -> None:
    """The same as in SQLite: results only where they are wanted."""
    with open_state(cluster.url) as state:
        add_job(state, JobKind.TRAIN, result={"models": [1]})
        add_job(state, JobKind.TRAIN, JobState.QUEUED)
        light = {one.state: one.result for one in state.jobs.list(with_results=False)}
        assert light == {JobState.DONE: True, JobState.QUEUED: None}
        whole = {one.state: one.result for one in state.jobs.list()}
        assert whole == {JobState.DONE: {"models": [1]}, JobState.QUEUED: None}
