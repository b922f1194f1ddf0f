"""Groups of rows: numbers for their labels, and parts that keep them whole."""

import numpy as np
import numpy.typing as npt

from kernelcast.models.learned.learner import Part
from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Texts

_LEAST_GROUPS = 20


def list_names(labels: Texts) -> list[str]:
    """Give the different labels of rows, sorted."""
    return sorted({str(one) for one in labels})


def number_groups(labels: Texts) -> npt.NDArray[np.intp]:
    """Give each row the number of its group, groups in the order of their labels."""
    names, numbers = np.unique(labels.astype(str), return_inverse=True)
    if len(names) < 2:
        msg = (
            f"model: {len(labels)} rows of {len(names)} groups to learn from; give at least two "
            "groups, so that one can be held out"
        )
        raise InputError(msg)
    return numbers.astype(np.intp)


def divide_groups(groups: npt.NDArray[np.intp], count: int) -> list[Part]:
    """Divide rows into parts of whole groups, each part held out once.

    Parameters
    ----------
    groups : ndarray of int, shape (n,)
        Number of each row's group.
    count : int
        Parts wanted; fewer where there are fewer groups.
    """
    from sklearn.model_selection import GroupKFold

    count = min(count, len(np.unique(groups)))
    folds = GroupKFold(n_splits=count).split(groups, groups=groups)
    return [Part(train=train, test=test) for train, test in folds]


def refine_groups(groups: npt.NDArray[np.intp], kernels: Texts) -> npt.NDArray[np.intp]:
    """Split groups by kernel where they are too few to promise a coverage.

    Of K groups the unseen one weighs 1 / (K + 1). With three devices no interval below infinity
    would hold 90 %: then kernels of devices stand for the unseen, each predicted without its
    device. They are not independent, so what is promised holds less strictly.
    """
    if len(np.unique(groups)) >= _LEAST_GROUPS:
        return groups
    labels = np.array([f"{one}/{name}" for one, name in zip(groups, kernels, strict=True)])
    return np.unique(labels, return_inverse=True)[1].astype(np.intp)
