"""Durations for Dask's scheduler."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.errors import InputError
from kernelcast.scheduling.dask_durations import (
    SETTING,
    expected_durations,
    mean_duration,
    task_durations,
    write_dask_config,
)

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")  # brings the defaults of its settings


@given(st.floats(1e-6, 1e6))
def test_durations_are_read_as_they_were_meant(seconds: float) -> None:
    """Dask's own parser gives the seconds back."""
    text = task_durations({"triad": seconds})["triad"]
    assert dask.utils.parse_timedelta(text) == pytest.approx(seconds, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "seconds", "complaint"),
    [
        *((name, 1.0, "Dask would file") for name in ("triad-4096", "", "-x", "triad-abcdefab")),
        *(("triad", seconds, "positive") for seconds in (0.0, -1.0, math.inf, math.nan)),
    ],
)
def test_what_dask_would_not_use_is_refused(name: str, seconds: float, complaint: str) -> None:
    """Names that it files elsewhere, and times that are none."""
    with pytest.raises(InputError, match=complaint):
        task_durations({name: seconds})


def test_a_mean_needs_every_device_in_use() -> None:
    """A device that no worker uses needs no time."""
    assert mean_duration({"a": 2.0}, {"a": 3, "b": 0}) == 2.0
    with pytest.raises(InputError, match="no time for b"):
        mean_duration({"a": 2.0}, {"a": 1, "b": 1})
    with pytest.raises(InputError, match="no workers"):
        mean_duration({"a": 2.0}, {})


def test_dask_is_configured_for_a_block_or_by_a_file(tmp_path: Path) -> None:
    """What the user's own configuration says of other names stays; a file is read as a scheduler in
    another process would."""
    with dask.config.set({SETTING: {"mine": "1h"}}):
        with expected_durations(task_durations({"horner_4096": 0.25})):
            assert dask.config.get(SETTING) == {"mine": "1h", "horner_4096": "250000.000us"}
        assert dask.config.get(SETTING) == {"mine": "1h"}
    write_dask_config(tmp_path / "kernelcast.yaml", task_durations({"triad_64": 0.5}))
    found = dask.config.collect(paths=[str(tmp_path)], env={})
    assert dask.config.get(SETTING, config=found) == {"triad_64": "500000.000us"}
    with pytest.raises(InputError, match="cannot be written"):
        write_dask_config(tmp_path / "none" / "x.yaml", {})
