from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.records.errors import InputError
from kernelcast.records.observation import Observation, ObservationFlag, RunTimes
from kernelcast.training.settings import ALL_ROWS, RowFilter
from kernelcast.training.table import read_observations
from kernelcast.training.training import score_sampling_points
from kernelcast.training_data.parquet import export_parquet
from kernelcast.training_data.store import open_store
from support.observations import make_observation

COST_S = 1e-3  # ten work-groups at 0.1 ms


def observe(
    number: int, seconds: float, samples: Sequence[tuple[int, float | None]]
) -> Observation:
    """Make an observation on one device with a sample set per multiple and linear time."""
    one = make_observation(number, devices=1)
    sets = tuple(
        replace(one.samples[0], multiple=multiple, window_set=place, linear_s=linear_s)
        for place, (multiple, linear_s) in enumerate(samples)
    )
    return replace(one, samples=sets, runs=RunTimes(median_s=seconds))


def test_scores_of_a_case_by_hand() -> None:
    """Errors over launches and window sets; the default last; costs as shares."""
    rows = [
        observe(1, 0.2, [(0, 0.22), (1, 0.3), (1, 0.2), (2, None)]),
        observe(2, 0.4, [(0, 0.38), (1, 0.44), (5, 0.2)]),
    ]
    found = [*score_sampling_points(rows, RowFilter()).itertuples()]
    assert [(one.label, one.multiple, one.rows) for one in found] == [
        ("1, 2", 1, 3), ("5, 6", 5, 1), ("default", 0, 2),
    ]  # fmt: skip
    assert {one.device for one in found} == {"device-0"}
    first, last = found[0], found[-1]
    assert first.mean == pytest.approx((0.5 + 0.0 + 0.1) / 3)
    assert first.median == pytest.approx(0.1)
    assert first.p90 == pytest.approx(0.42)  # 0.8 of the way from 0.1 to 0.5
    assert first.cost == pytest.approx(COST_S / 0.2)
    assert last.mean == pytest.approx(0.075)
    assert last.cost == pytest.approx((COST_S / 0.2 + COST_S / 0.4) / 2)


def test_only_launches_that_count_are_judged() -> None:
    """Short and small launches are left out, and what is read twice counts once."""
    short = observe(1, 0.09, [(0, 0.3)])
    good = observe(2, 0.2, [(0, 0.2)])
    (found,) = score_sampling_points([short, good, good], RowFilter()).itertuples()
    assert (found.rows, found.mean) == (1, 0.0)
    assert score_sampling_points([good], RowFilter(least_work_groups=2000)).empty
    assert score_sampling_points([], ALL_ROWS).empty


def test_reads_stores_and_parquet_alike(tmp_path: Path) -> None:
    """Rows without flags, of the devices asked for, from stores, files and folders."""
    flagged = replace(make_observation(0), flags=frozenset({ObservationFlag.CONTAMINATED}))
    expected = {make_observation(number).key for number in range(1, 6)}
    folder = tmp_path / "rows"
    folder.mkdir()
    with open_store(tmp_path / "a.sqlite") as store:
        store.add_many([flagged, *map(make_observation, range(1, 6))])
        export_parquet(store, folder / "rows.parquet")
    for source in (tmp_path / "a.sqlite", folder, folder / "rows.parquet"):
        assert {one.key for one in read_observations([source])} == expected
        (only,) = {
            one.launch.device.id for one in read_observations([source], devices=["device-1"])
        }
        assert only == "device-1"
    both = list(read_observations([tmp_path / "a.sqlite", folder]))
    assert len(both) == 10
    assert score_sampling_points(both, ALL_ROWS)["rows"].sum() == 5


def test_sources_that_are_not_there_are_errors(tmp_path: Path) -> None:
    """A missing file and a folder without Parquet files."""
    with pytest.raises(InputError, match="there is no store"):
        list(read_observations([tmp_path / "none.sqlite"]))
    with pytest.raises(InputError, match="no Parquet files"):
        list(read_observations([tmp_path]))
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"cut\.parquet: is no Parquet file"):
        list(read_observations([tmp_path]))
    with pytest.raises(InputError, match=r"cut\.parquet: is no Parquet file"):
        list(read_observations([tmp_path / "cut.parquet"]))
