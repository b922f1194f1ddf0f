import numpy as np
import pytest

from kernelcast.models.time_models import make_model
from kernelcast.records.errors import InputError
from kernelcast.training.settings import TrainingSettings
from kernelcast.training.training import train
from support.synthetic_rows import make_rows

TABLE = make_rows(kernels=4, sizes=2, devices=3)
NAMES = sorted({*TABLE.devices})
HERE = TrainingSettings(jobs=1)
QUICK = TrainingSettings(jobs=1, with_validation=False)


def test_each_device_gets_a_model_of_its_own_rows() -> None:
    """Each learns from one device, and is judged on kernels held out of it."""
    outcome = train(TABLE, "ridge", HERE)
    assert [one.name for one in outcome.trained] == [f"ridge/{name}" for name in NAMES]
    assert not outcome.refused
    for one, name in zip(outcome.trained, NAMES, strict=True):
        own = TABLE.take(TABLE.devices == name)
        facts = one.model.facts
        assert facts["devices"] == [name]
        assert facts["kernels"] == sorted({*TABLE.kernels})
        assert (facts["rows"], facts["data_digest"]) == (8, own.digest)
        expected = make_model("ridge").fit(own).predict(own)
        np.testing.assert_array_equal(one.model.predict(own), expected)
        assert one.report is not None
        assert one.report.split == "kernel"
        assert {*one.report.rows.groups} == {*TABLE.kernels}
        assert {*one.report.rows.devices} == {name}


def test_one_pooled_model_learns_from_all_devices() -> None:
    """It is judged on devices held out, where there are enough to hold one out."""
    (one,) = train(TABLE, "hybrid_pooled", HERE).trained
    facts = one.model.facts
    assert (one.name, facts["devices"], facts["rows"]) == ("hybrid_pooled", NAMES, 24)
    assert one.report is not None
    assert one.report.split == "device"
    assert one.report.rows.groups == one.report.rows.devices
    two = TABLE.take(TABLE.devices != NAMES[0])
    (other,) = train(two, "hybrid_pooled", HERE).trained
    assert other.report is not None
    assert other.report.split == "kernel"
    assert {*other.report.rows.groups} == {*TABLE.kernels}


def test_a_device_with_too_few_kernels_gets_none() -> None:
    """The others get theirs, and the reason says what is missing and what to do."""
    kept = (TABLE.devices != NAMES[1]) | np.isin(TABLE.kernels.astype(str), [TABLE.kernels[0]])
    outcome = train(TABLE.take(kept), "linear", QUICK)
    assert [one.name for one in outcome.trained] == [f"linear/{NAMES[0]}", f"linear/{NAMES[2]}"]
    ((name, reason),) = outcome.refused.items()
    assert name == f"linear/{NAMES[1]}"
    assert "2 measured, 2 of these sampled, of 1 kernel; at least 3 kernels" in reason
    assert f"kernelcast collect --device {NAMES[1]}" in reason


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
