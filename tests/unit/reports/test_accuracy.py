"""Predictions beside measured times, as pages show them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kernelcast.launches.data_store import open_data_store
from kernelcast.models.validation.report import report_from_json
from kernelcast.records.observation import Observation, ObservationFlag, Origin, RunTimes
from kernelcast.reports.accuracy import find_ablation, read_kernel_launches
from support.observations import make_observation
from support.served_pages import make_validation

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


def _read(path: Path, observations: Sequence[Observation]) -> list[dict[str, Any]]:
    with open_data_store(path) as store:
        store.add_many(observations)
        return read_kernel_launches(store, observations[0].launch.kernel.label)


def test_one_launch_is_one_however_often_it_was_observed(tmp_path: Path) -> None:
    """With the median and the noise of its newest 20 observations, and the time of the newest.

    A single one has the noise of its runs, and nobody remembers anything of it.
    """
    times = [0.5] * 200 + [0.1 * (1 + 0.001 * place) for place in range(20)]
    (one,) = _read(tmp_path / "rows.sqlite", _observe(times))
    assert one["observations"] == 20
    assert one["seconds"] == pytest.approx(0.1 * 1.0095)
    assert one["noise"] == pytest.approx(0.1 * 0.017 / 2 / one["seconds"])
    assert one["when"] == BEGIN + timedelta(minutes=219)
    single = make_observation(1)
    (found,) = _read(tmp_path / "single.sqlite", [single])
    assert (found["noise"], found["remembered"]) == (single.runs.noise, None)
    assert found["linear_s"] == single.samples[0].linear_s


def test_the_newest_observation_is_told_by_those_before_it(tmp_path: Path) -> None:
    """It is not among what tells it; a lasting shift is found where it becomes certain."""
    times = [0.1, 0.101, 0.099, 0.1, 0.1, 0.12]
    (one,) = _read(tmp_path / "rows.sqlite", _observe(times))
    assert one["remembered"] is not None
    assert one["remembered"][1] == 0.12
    assert one["remembered"][0].seconds == pytest.approx(0.1)
    assert one["shifted_at"] is None
    shifted = [0.1, 0.101, 0.099, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2, 0.2]
    (one,) = _read(tmp_path / "shifted.sqlite", _observe(shifted))
    assert one["shifted_at"] is not None
    assert one["shifted_at"] > BEGIN + timedelta(minutes=5)
    assert one["remembered"] is not None
    assert one["remembered"][0].seconds == pytest.approx(0.2)


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
    assert [(one["seconds"], one["observations"]) for one in held] == [(0.1, 1)]


def test_an_ablation_is_found_in_a_validation() -> None:
    """The hybrid without a group, less the hybrid."""
    report = report_from_json(make_validation())
    ((group, one),) = find_ablation(report, "device-0")
    assert (group, one.device) == ("analytic", "device-0")
    assert one.first_errors is not None
    assert one.second_errors is not None
    assert one.difference == pytest.approx(one.second_errors["mean"] - one.first_errors["mean"])
    assert find_ablation(report, "another") == []
    assert one.low is not None
    assert one.high is not None
    assert one.low <= one.difference <= one.high
