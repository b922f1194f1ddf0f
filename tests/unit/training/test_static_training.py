from dataclasses import replace
from pathlib import Path

import kernelcast.training_data
from kernelcast.models.static.fitting import fit_static
from kernelcast.models.static.model import ANY
from kernelcast.training.reading import read_observations
from kernelcast.training.static import CPU_MODEL, choose_launches, read_launches

MODELLED = Path(kernelcast.training_data.__file__).parent / "modelled"
DEVICE = "pocl-skylake-avx512-intel-366a"


def test_takes_rows_of_todays_analytic_model_only() -> None:
    """Leaves out observations whose analytic features another model made."""
    rows = [*read_observations([MODELLED / f"{DEVICE}.parquet"])]
    assert len([*choose_launches(rows)]) == len(rows) > 0
    older = [replace(one, versions={**one.versions, CPU_MODEL: "1"}) for one in rows]
    assert not [*choose_launches(older)]


def test_trains_a_model_per_runtime_and_one_for_others() -> None:
    """Makes a model of each runtime that was measured, from features without samples."""
    launches = read_launches([MODELLED / f"{DEVICE}.parquet"])
    models = fit_static([one.row for one in launches])
    assert set(models) == {"pocl", ANY}
    assert models["pocl"].facts["rows"] == len(launches)
    assert not any(name.startswith("sampled.") for one in launches for name in one.row.features)
