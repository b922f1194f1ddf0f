from dataclasses import replace

import numpy as np
import pytest

from kernelcast.models.validation.comparison import Comparison
from kernelcast.records.errors import InputError
from kernelcast.records.training_table import TrainingTable
from kernelcast.training.comparing import compare_table
from kernelcast.training.settings import ALL_ROWS, Split, ValidationSettings
from kernelcast.training.training import validate_models
from support.synthetic_rows import make_rows

TABLE = make_rows(kernels=8, sizes=3, devices=2)
SETTINGS = ValidationSettings(rows=ALL_ROWS, jobs=1)


def compare(table: TrainingTable, split: Split, explained: int) -> Comparison:
    """Compare the linear model with a learned one."""
    settings = replace(SETTINGS, split=split, folds=3)
    methods = ("linear", "ridge")
    found = compare_table(table, methods, settings, resamples=200, explained=explained).pair
    assert found is not None
    return found


def test_explains_the_worst_kernels_of_the_learned_model() -> None:
    """Per device the kernels with the largest errors, with the corrections that were judged; every
    step to the end is told."""
    told: list[tuple[str, int, int]] = []
    compared = compare_table(
        TABLE, ("linear", "ridge"), SETTINGS, resamples=200, explained=2,
        report=lambda *one: told.append(one),
    ).pair  # fmt: skip
    assert [one for one in told if one[0] == "fits"][-1] == ("fits", 32, 32)
    assert told[-1] == ("explaining errors", 4, 4)
    assert compared is not None
    answers = validate_models(TABLE, replace(SETTINGS, models=("ridge",))).rows.to_frame()
    corrected = answers.set_index(["device", "kernel", "key"])["predicted_s"].dropna().sort_index()
    linear_s = dict(zip(TABLE.keys.tolist(), TABLE.linear_s.tolist(), strict=True))
    for device in compared.devices:
        worst = sorted(device.kernels, key=lambda one: -one["second_error"])[:2]
        explained = [one for one in compared.explained if one.device == device.device]
        assert [one.kernel for one in explained] == [one["kernel"] for one in worst]
        for one in explained:
            assert one.attribution.model == "ridge"
            own = corrected.loc[one.device, one.kernel]
            rows = [seconds / linear_s[key] - 1 for key, seconds in own.items()]
            assert one.attribution.rows == len(rows)
            assert one.attribution.correction == pytest.approx(np.mean(rows), abs=1e-9)


def test_an_explanation_has_not_seen_the_application() -> None:
    """Where applications are held out, sibling kernels have no part in what is told of one; devices
    cannot be held out."""
    before = compare(TABLE, Split.APPLICATION, 1)
    assert before.resampled == "application"
    first = before.explained[0]
    application = TABLE.applications[TABLE.kernels == first.kernel][0]
    siblings = (TABLE.applications == application) & (TABLE.kernels != first.kernel)
    assert siblings.any()
    slower = TABLE.assign(seconds=np.where(siblings, 1.02 * TABLE.seconds, TABLE.seconds))
    after = compare(slower, Split.APPLICATION, 8)
    same = next(
        one for one in after.explained if (one.device, one.kernel) == (first.device, first.kernel)
    )
    assert same.attribution == first.attribution
    with pytest.raises(InputError, match="split by kernel"):
        compare(TABLE, Split.DEVICE, 1)
