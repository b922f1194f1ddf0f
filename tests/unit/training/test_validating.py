import numpy as np
import pytest

from kernelcast.models.validation.report import ValidationReport
from kernelcast.records.errors import InputError
from kernelcast.records.training_table import TrainingTable
from kernelcast.training.settings import (
    ALL_ROWS,
    RowFilter,
    Split,
    ValidationSettings,
)
from kernelcast.training.training import validate_models
from support.synthetic_rows import make_rows

KERNELS = make_rows(kernels=5, sizes=3)
DEVICES = make_rows(kernels=4, sizes=2, devices=3)


def validate(
    table: TrainingTable,
    *models: str,
    split: Split = Split.KERNEL,
    rows: RowFilter = ALL_ROWS,
) -> ValidationReport:
    """Validate in this process."""
    settings = ValidationSettings(split=split, models=models, rows=rows, jobs=1)
    return validate_models(table, settings)


def change(table: TrainingTable, column: str, values: dict[int, float]) -> TrainingTable:
    """Change some rows of a column."""
    found = getattr(table, column).copy()
    for row, value in values.items():
        found[row] = value
    return table.assign(**{column: found})


def test_rows_outside_the_filter_have_no_part() -> None:
    """Launches too short, too small or of unknown size are neither learned from nor judged."""
    table = KERNELS.assign(seconds=0.2 + KERNELS.seconds)
    table = change(table, "seconds", {0: 0.0999, 7: np.nan})
    table = change(table, "work_groups", {1: 255, 4: np.nan, 9: 256})
    kept = np.setdiff1d(np.arange(len(table)), [0, 1, 4, 7])
    found = validate(table, "linear", "hybrid", rows=RowFilter())
    assert {*found.rows.keys} == {*table.keys[kept]}
    assert found == validate(table.take(kept), "linear", "hybrid")
    everything = validate(table, "linear")
    assert {*everything.rows.keys} == {*table.keys[np.arange(len(table)) != 7]}


def test_a_device_with_too_few_kernels_is_left_out_and_named() -> None:
    """The other devices are judged."""
    short = DEVICES.devices[0]
    kernels = sorted({*DEVICES.kernels})[:2]
    table = DEVICES.take((DEVICES.devices != short) | np.isin(DEVICES.kernels.astype(str), kernels))
    report = validate(table, "linear")
    assert {one.device for one in report.scores} == {*DEVICES.devices} - {short}
    (reason,) = report.refused.values()
    assert [*report.refused] == [f"every model on {short}"]
    assert "2 kernels" in reason
    assert f"kernelcast collect --device {short}" in reason


def test_too_few_rows_say_what_is_missing() -> None:
    """Counts rows, measured ones, those that the filter takes, and kernels."""
    seconds = np.where(np.arange(len(KERNELS)) < 4, np.nan, 0.05)
    table = KERNELS.assign(seconds=seconds)
    with pytest.raises(InputError) as error:
        validate(table, "linear", rows=RowFilter())
    assert str(error.value).startswith(
        "device-0: 15 rows, 11 measured, 0 of at least 0.1 s and 256 work-groups"
    )
    assert "of 0 kernels" in str(error.value)
    assert "kernelcast collect --device device-0" in str(error.value)


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
