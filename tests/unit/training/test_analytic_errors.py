from dataclasses import replace
from pathlib import Path

import pytest

import kernelcast.training_data
from kernelcast.models.evidence.stored import ANY, find_half_width, load_shipped
from kernelcast.training.analytic_errors import CPU_MODEL, calibrate_runtimes, choose_runs
from kernelcast.training.reading import read_observations

MODELLED = Path(kernelcast.training_data.__file__).parent / "modelled"
DEVICE = "pocl-skylake-avx512-intel-366a"


def test_takes_rows_of_todays_analytic_model_only() -> None:
    """Leaves out observations whose analytic features another model made."""
    rows = [*read_observations([MODELLED / f"{DEVICE}.parquet"])]
    assert len(choose_runs(rows)) == len(rows) > 0
    older = [replace(one, versions={**one.versions, CPU_MODEL: "1"}) for one in rows]
    assert not choose_runs(older)


def test_calibrates_each_runtime_and_all_together() -> None:
    """Gives the intervals of each runtime that was measured, and those of others."""
    runs = choose_runs(read_observations([MODELLED / f"{DEVICE}.parquet"]))
    assert {*calibrate_runtimes(runs)} == {"pocl", ANY}


def test_what_is_shipped_was_calibrated_on_what_is_shipped() -> None:
    """Intervals are of the CPU model and the rows that come with them."""
    made = calibrate_runtimes(choose_runs(read_observations([MODELLED])))
    shipped = load_shipped()
    assert {*made} == {*shipped}
    for name, one in made.items():
        for coverage in (0.5, 0.9):
            found = find_half_width(shipped[name], coverage)
            assert found == pytest.approx(find_half_width(one, coverage), rel=1e-3)
