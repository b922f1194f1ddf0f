"""A learned correction of fused values, behind a gate; intervals are conformal around it.

It is the correction that corrects the linear model's time, with the fused value in its place: the
same settings, gate and file format.
"""

from collections.abc import Sequence

import numpy as np

from kernelcast.models.correction import CorrectionModel
from kernelcast.models.evidence.piece import FusedEstimate
from kernelcast.models.learned.svr import SvrLearner
from kernelcast.records.errors import InputError
from kernelcast.records.training_table import TrainingTable

CORRECTS_FUSED = {"reference": "fused"}
"""Facts of a model that was fitted on such tables."""
FUSED = CorrectionModel(name="fused", learner=SvrLearner())
"""Has not learned yet; fit it on tables that `replace_reference` has made."""


def replace_reference(table: TrainingTable, fused: Sequence[FusedEstimate]) -> TrainingTable:
    """Put fused values in the place of the linear model's times.

    Parameters
    ----------
    table : TrainingTable
        Launches.
    fused : sequence of FusedEstimate
        One per row; of launches to learn from, made without what was learned from their kernels.

    Raises
    ------
    InputError
        If there is not one for each row.
    """
    if len(fused) != len(table):
        msg = f"{len(fused)} fused estimates for {len(table)} rows; give one per row"
        raise InputError(msg)
    return table.assign(
        linear_s=np.array([one.seconds for one in fused]),
        linear_error=np.sqrt([one.variance for one in fused]),
    )
