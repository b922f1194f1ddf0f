import pickle
import sys
import weakref
from pathlib import Path

import joblib
import numpy as np
import pytest

from kernelcast.models.catalogue import make_model
from kernelcast.models.validation import ValidationPlan, validate
from kernelcast.models.validation.sharing import RowsFile, SharedRows, open_shared, share
from kernelcast.testing.synthetic_rows import make_rows

TABLE = make_rows(kernels=4, sizes=3)
ROWS = SharedRows(table=TABLE, groups=TABLE.kernels)


def test_processes_read_one_file_once() -> None:
    """A task holds a path instead of the rows, and the file goes with the validation."""
    with share(ROWS, jobs=2) as shared:
        assert isinstance(shared, RowsFile)
        assert len(pickle.dumps(shared)) < 500
        found = open_shared(shared)
        assert open_shared(pickle.loads(pickle.dumps(shared))) is found
        assert found.table.digest == TABLE.digest
        np.testing.assert_array_equal(found.groups, TABLE.kernels)
    assert not Path(shared.path).parent.exists()


@pytest.mark.parametrize("jobs", [1, None])
def test_nothing_is_written_without_own_processes(
    jobs: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process has the rows; a cluster of the caller's cannot read this machine's files."""
    monkeypatch.setattr(joblib, "dump", None)
    with share(ROWS, jobs=jobs) as shared:
        assert shared is ROWS
        assert open_shared(shared) is ROWS


def test_rows_look_large_to_joblib() -> None:
    """Dask's backend scatters what can be referred to weakly and has more than 1,000 bytes."""
    assert weakref.ref(ROWS)() is ROWS
    assert sys.getsizeof(ROWS) > 10_000


def test_a_validation_writes_its_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several models and folds, one file; the report is that of one process."""
    written: list[object] = []
    dump = joblib.dump

    def note(value: object, path: Path) -> object:
        written.append(value)
        return dump(value, path)

    monkeypatch.setattr(joblib, "dump", note)
    models = [make_model("linear"), make_model("two_point")]
    with joblib.parallel_config(backend="threading"):
        found = validate(TABLE, models, TABLE.kernels, ValidationPlan(jobs=2))
    assert [type(one) for one in written] == [SharedRows]
    assert found == validate(TABLE, models, TABLE.kernels)
