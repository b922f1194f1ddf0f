"""A correction that is learned around fused values."""

import math

import numpy as np
import pytest

from kernelcast.models.evidence.correction import FUSED, replace_reference
from kernelcast.models.evidence.fusion import fuse
from kernelcast.models.evidence.piece import FusedEstimate, Kind, Piece
from kernelcast.records.errors import InputError
from support.synthetic_rows import make_rows


def fuse_times(seconds: np.ndarray, factor: float) -> list[FusedEstimate]:
    """Fuse one piece per launch, wrong by a factor."""
    return [
        fuse([
            Piece(kind=Kind.SAMPLES, log_seconds=math.log(one * factor), variance=0.01),
        ])
        for one in seconds.tolist()
    ]  # fmt: skip


def test_fused_values_stand_for_the_linear_models_times() -> None:
    """Puts times and standard deviations into the columns that are corrected."""
    table = make_rows(kernels=20)
    replaced = replace_reference(table, fuse_times(table.seconds, 1.2))
    assert replaced.linear_s == pytest.approx(1.2 * table.seconds)
    assert replaced.linear_error == pytest.approx(np.full(len(table), 0.1))


def test_what_all_fused_values_get_wrong_is_corrected() -> None:
    """Takes a bias off that kernels of the training share."""
    table = make_rows(kernels=20)
    replaced = replace_reference(table, fuse_times(table.seconds, 1.2))
    found = FUSED.fit(replaced).predict(replaced)
    assert np.mean(np.abs(found / table.seconds - 1)) < 0.1


def test_every_row_needs_a_fused_value() -> None:
    """Refuses a table of another length."""
    table = make_rows(kernels=20)
    with pytest.raises(InputError, match="give one per row"):
        replace_reference(table, fuse_times(table.seconds[:1], 1.0))
