import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from kernelcast.training_data.store import Store, open_store
from kernelcast.training_data.store.schema import OBSERVATIONS
from kernelcast.training_data.summary import FindingKind, check_store
from support.observations import make_launch, make_observation

BAD = make_observation(7)


@pytest.mark.parametrize(
    "read",
    [lambda store: list(check_store(store)) == [], lambda store: len(list(store.find())) == 20],
)
def test_a_row_that_came_meanwhile_is_no_finding(
    store: Store, monkeypatch: pytest.MonkeyPatch, read: Callable[[Store], bool]
) -> None:
    """Reads a row whose feature schema came with it, after the reading had begun."""
    before_and_after = iter([{}, store.schemas()])
    monkeypatch.setattr(Store, "schemas", lambda _: next(before_and_after))
    assert read(store)


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ({"seconds": -1.0}, FindingKind.IMPOSSIBLE, "seconds is -1.0"),
        ({"seconds": 0.0}, FindingKind.IMPOSSIBLE, "positive"),
        ({"seconds": float("inf")}, FindingKind.IMPOSSIBLE, "finite"),
        ({"linear_s": -2.0}, FindingKind.IMPOSSIBLE, "linear_s"),
        ({"sampling_s": 5.0}, FindingKind.INCONSISTENT, "sampling_s is 5.0, its content makes"),
        ({"measured_at_us": 2**53}, FindingKind.IMPOSSIBLE, "days from now"),
        ({"seconds": 0.2}, FindingKind.INCONSISTENT, "lies outside its runs"),
        ({"noise": 0.5}, FindingKind.INCONSISTENT, "exceeds what its runs differ by"),
        ({"features": None}, FindingKind.INCONSISTENT, "schema without features"),
        ({"features": None, "schema_id": None}, FindingKind.INCONSISTENT, "has no features"),
        ({"features": b"\0\0\0\0\0\0\xf8\x7f" * 3}, FindingKind.INCONSISTENT, "all its features"),
        ({"features": b"\0" * 8}, FindingKind.UNREADABLE, "1 features, its schema 3"),
        ({"schema_id": "v9-000000000000"}, FindingKind.UNREADABLE, "is not in the store"),
        ({"samples": "[{]"}, FindingKind.UNREADABLE, "JSONDecodeError"),
        ({"flags": ",odd,"}, FindingKind.UNREADABLE, "ValueError"),
        ({"driver": "other"}, FindingKind.INCONSISTENT, "the row was changed by hand"),
        ({"work_groups": 3}, FindingKind.INCONSISTENT, "work_groups is 3, its content makes"),
        ({"sampling_s": None}, FindingKind.INCONSISTENT, "sampling_s is None, its content makes"),
    ],
)
def test_a_spoiled_row_is_found(
    store: Store, values: dict[str, Any], kind: FindingKind, message: str
) -> None:
    """Finds exactly the spoiled row, says what is wrong and what to do."""
    is_bad = OBSERVATIONS.c.key == BAD.key
    with store.write() as connection:
        connection.execute(sa.update(OBSERVATIONS).where(is_bad).values(**values))
    (found,) = check_store(store)
    assert (found["kind"], found["key"], found["kernel"]) == (kind, BAD.key, BAD.launch.kernel.name)
    assert message in found["message"]
    assert "kernelcast data check --remove" in found["advice"]


@pytest.mark.parametrize(
    "copy",
    [
        lambda one: replace(one, measurement="again"),
        lambda one: replace(one, launch=replace(one.launch, arguments_digest="0" * 64)),
    ],
)
def test_a_copy_is_found(store: Store, copy: Callable[[Any], Any]) -> None:
    """A row that has the very times of another is one, unless its launch is; one may stand."""
    store.add_many([copy(BAD), replace(BAD, launch=make_launch(8), measurement="x")])
    (found,) = check_store(store)
    assert found["kind"] is FindingKind.DUPLICATED
    store.remove([found["key"]])
    assert list(check_store(store)) == []


@pytest.mark.parametrize(
    ("repeats", "times", "told"),
    [(200, 0.01, ["were sampled of"]), (3, 1.0, []), (3, 2.0, ["launches of a part"])],
)
def test_samples_may_not_exceed_the_launch(
    store: Store, repeats: int, times: float, told: list[str]
) -> None:
    """Finds samples of more work-groups than there are; each of six launches may take as long as a
    whole launch of microseconds, and no longer."""
    counts: list[int] = []
    assert [*check_store(store, report=counts.append)] == []
    assert counts == [20]
    one = make_observation(30)
    launches = tuple(replace(each, duration_s=times * one.seconds)
                     for each in one.samples[0].launches * repeats)  # fmt: skip
    store.add(replace(one, samples=(replace(one.samples[0], launches=launches),)))
    found = [each["message"] for each in check_store(store)]
    assert len(found) == len(told)
    assert all(part in message for part, message in zip(told, found, strict=True))


def test_a_database_with_a_torn_page_is_damaged(tmp_path: Path) -> None:
    """Says so, where not even the check can read on."""
    path = tmp_path / "rows.sqlite"
    with open_store(path) as store:
        store.add_many(map(make_observation, range(200)))
    with sqlite3.connect(path) as connection:
        [(roots,)] = connection.execute("SELECT max(rootpage) FROM sqlite_master")
    connection.close()
    content = bytearray(path.read_bytes())
    for page in range(roots * 16384, len(content), 16384):  # rows, not where tables begin
        content[page : page + 64] = b"\xff" * 64
    path.write_bytes(content)
    with open_store(path) as store:
        found = list(check_store(store))
    assert found
    assert {one["kind"] for one in found} == {FindingKind.DAMAGED}
