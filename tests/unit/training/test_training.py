from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.models.time_models import make_model
from kernelcast.models.validation.report import ValidationReport
from kernelcast.records.errors import InputError
from kernelcast.records.observation import Observation, RunTimes
from kernelcast.records.training_table import TrainingTable
from kernelcast.training.registry import MODELS_VARIABLE, choose_registry, name_model, open_registry
from kernelcast.training.settings import (
    ALL_ROWS,
    RowFilter,
    Split,
    TrainingSettings,
    ValidationSettings,
)
from kernelcast.training.training import score_sampling_points, train, validate_models
from support.observations import make_observation
from support.synthetic_rows import make_rows

TABLE = make_rows(kernels=4, sizes=2, devices=3)
NAMES = sorted({*TABLE.devices})
HERE = TrainingSettings(jobs=1)
QUICK = TrainingSettings(jobs=1, with_validation=False)


def test_each_device_gets_a_model_of_its_own_rows() -> None:
    """Each learns from one device, and is judged on kernels held out of it."""
    models, refused, _ = train(TABLE, "ridge", HERE)
    assert [one.name for one in models] == [f"ridge/{name}" for name in NAMES]
    assert not refused
    for one, name in zip(models, NAMES, strict=True):
        own = TABLE.take(TABLE.devices == name)
        facts = one.model.facts
        assert facts["devices"] == [name]
        assert facts["kernels"] == sorted({*TABLE.kernels})
        assert (facts["rows"], facts["data_digest"]) == (8, own.digest)
        expected = make_model("ridge").fit(own).forecast(own)
        np.testing.assert_array_equal(one.model.forecast(own), expected)
        assert one.report is not None
        assert one.report.split == "kernel"
        assert {*one.report.rows.groups} == {*TABLE.kernels}
        assert {*one.report.rows.devices} == {name}


def test_one_pooled_model_learns_from_all_devices() -> None:
    """It is judged on devices held out, where there are enough to hold one out."""
    (one,), *_ = train(TABLE, "hybrid_pooled", HERE)
    facts = one.model.facts
    assert (one.name, facts["devices"], facts["rows"]) == ("hybrid_pooled", NAMES, 24)
    assert one.report is not None
    assert one.report.split == "device"
    assert one.report.rows.groups == one.report.rows.devices
    two = TABLE.take(TABLE.devices != NAMES[0])
    (other,), *_ = train(two, "hybrid_pooled", HERE)
    assert other.report is not None
    assert other.report.split == "kernel"
    assert {*other.report.rows.groups} == {*TABLE.kernels}


def test_what_cannot_be_trained_at_all_is_an_error() -> None:
    """Too few kernels, no measured or no sampled rows, unknown models."""
    few = TABLE.take(np.isin(TABLE.kernels.astype(str), [TABLE.kernels[0]]))
    with pytest.raises(InputError, match="of 1 kernel; at least 3 kernels"):
        train(few, "hybrid", QUICK)
    nothing = np.full(len(TABLE), np.nan)
    with pytest.raises(InputError, match="none of them with a measured time"):
        train(TABLE.assign(seconds=nothing), "hybrid", QUICK)
    with pytest.raises(
        InputError, match=r"hybrid/device-0: .*8 rows are measured, 0 of these sampled, of 0"
    ):
        train(TABLE.assign(linear_s=nothing), "hybrid", QUICK)
    with pytest.raises(InputError, match="no model is called 'oracle'"):
        train(TABLE, "oracle", QUICK)


KERNELS = make_rows(kernels=5, sizes=3)


def validate(
    table: TrainingTable,
    *models: str,
    split: Split = Split.KERNEL,
    rows: RowFilter = ALL_ROWS,
) -> ValidationReport:
    """Validate in this process."""
    settings = ValidationSettings(split=split, models=models, rows=rows, jobs=1)
    return validate_models(table, settings)


def test_rows_outside_the_filter_have_no_part() -> None:
    """Launches too short, too small or of unknown size are neither learned from nor judged; where
    too few are left, all are counted."""
    seconds, work_groups = 0.2 + KERNELS.seconds, KERNELS.work_groups.copy()
    seconds[[0, 7]] = 0.0999, np.nan
    work_groups[[1, 4, 9]] = 255, np.nan, 256
    table = KERNELS.assign(seconds=seconds, work_groups=work_groups)
    kept = np.setdiff1d(np.arange(len(table)), [0, 1, 4, 7])
    found = validate(table, "linear", "hybrid", rows=RowFilter())
    assert {*found.rows.keys} == {*table.keys[kept]}
    assert found == validate(table.take(kept), "linear", "hybrid")
    everything = validate(table, "linear")
    assert {*everything.rows.keys} == {*table.keys[np.arange(len(table)) != 7]}
    short = table.assign(seconds=np.where(np.isnan(seconds), np.nan, 0.05))
    told = (
        r"^device-0: 15 rows, 14 measured, 0 of at least 0\.1 s and 256 work-groups.*of 0 kernels"
        ".*kernelcast collect --device device-0"
    )
    with pytest.raises(InputError, match=told):
        validate(short, "linear", rows=RowFilter())


@pytest.mark.parametrize("split", [*Split])
def test_nothing_measured_is_an_error(split: Split) -> None:
    """Says so, whatever is held out, of empty tables and of tables without times."""
    nothing = KERNELS.assign(seconds=np.full(len(KERNELS), np.nan))
    for table in (nothing, nothing.take(np.array([], dtype=np.intp))):
        with pytest.raises(InputError, match=r"none of them with a measured time.*collect"):
            validate(table, split=split)


def test_applications_are_held_out_as_a_whole() -> None:
    """Two kernels of an application are predicted together; rows must name theirs."""
    table = make_rows(kernels=8, sizes=2)
    report = validate(table, "linear", split=Split.APPLICATION)
    assert {*report.rows.groups} == {*table.applications}
    unnamed = table.assign(applications=np.where(table.kernels == table.kernels[0], "",
                                                   table.applications))  # fmt: skip
    with pytest.raises(InputError, match="2 of 16 rows name no application; split by kernel"):
        validate(unnamed, "linear", split=Split.APPLICATION)


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
    """Errors over launches and window sets; the default last; costs as shares. Short and small
    launches are left out, and what is read twice counts once."""
    rows = [
        observe(1, 0.2, [(0, 0.22), (1, 0.3), (1, 0.2), (2, None)]),
        observe(2, 0.4, [(0, 0.38), (1, 0.44), (5, 0.2)]),
    ]
    short = observe(3, 0.09, [(0, 0.3)])
    found = [*score_sampling_points([*rows, short, rows[0]], RowFilter()).itertuples()]
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
    assert score_sampling_points(rows, RowFilter(least_work_groups=2000)).empty


@given(st.lists(st.text(max_size=30), min_size=2, max_size=5, unique=True))
def test_every_device_has_a_name_of_its_own(devices: list[str]) -> None:
    """Whatever ids hold, names are fit for a registry and differ."""
    names = [name_model("hybrid", one) for one in devices]
    assert len({*names}) == len(devices)
    registry = open_registry("/nowhere")
    for one in names:
        assert registry.find_versions(one).versions == ()
    with pytest.raises(InputError, match="bogus://models: cannot be read"):
        open_registry("bogus://models").list_models()


def test_the_place_is_chosen_like_the_store(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is named, else the variable, else the data folder."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    monkeypatch.delenv(MODELS_VARIABLE, raising=False)
    assert choose_registry() == str(tmp_path / "models")
    monkeypatch.setenv(MODELS_VARIABLE, "memory://elsewhere")
    assert choose_registry() == "memory://elsewhere"
    assert choose_registry("here") == "here"
