"""What every model of run time does.

A model is a frozen description; `fit` gives a fitted model, which predicts. The learned ones
predict ``log(measured / reference)``, where the reference is the linear model's time. That is the
paper's target in other words: with the instructions I that the whole launch issues, the linear
model's rate is ``IPS_lin = I / t_lin``, the learned one's ``IPS_est = I / t_ML`` (section 5.2,
``t_ML(N) = I_P2 N / (P2 IPS_est)`` with ``I = I_P2 N / P2``), so
``t_ML / t_lin = IPS_lin / IPS_est``: to predict the correction is to predict the saturated rate.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kernelcast.models.learned.learner import State
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import Numbers, Texts, TrainingTable

COVERAGE = 0.9
"""Share of true times that intervals hold unless another is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forecast:
    """Predictions with intervals."""

    seconds: Numbers
    low: Numbers
    high: Numbers
    """Shape (n,). Predicted time of whole launches, in seconds; ``low <= seconds <= high``."""
    coverage: float
    """Share of true times that shall lie inside."""
    in_domain: npt.NDArray[np.bool_]
    """Shape (n,). Whether the launch resembles those that the model has learned from."""

    @classmethod
    def around(
        cls,
        seconds: Numbers,
        factor: Numbers,
        coverage: float,
        in_domain: npt.NDArray[np.bool_] | None = None,
    ) -> "Forecast":
        """Put intervals around times, a factor to either side; without a domain all lie in it."""
        return cls(
            seconds=seconds,
            low=seconds / factor,
            high=seconds * factor,
            coverage=coverage,
            in_domain=np.ones(len(seconds), dtype=np.bool_) if in_domain is None else in_domain,
        )


class FittedModel(Protocol):
    """A model that has learned."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def predict(self, table: TrainingTable) -> Numbers:
        """Give the time of every launch, in seconds.

        Raises
        ------
        InputError
            If the table has another schema, or a row lacks what the model needs.
        """
        ...

    def forecast(self, table: TrainingTable, coverage: float = COVERAGE) -> Forecast:
        """Give times with intervals.

        Raises
        ------
        InputError
            As `predict`, or if the coverage is not between 0 and 1.
        """
        ...

    def describe(self) -> dict[str, object]:
        """Say in plain values what was learned: settings, gate, sizes."""
        ...

    def state(self) -> State:
        """Give everything as plain numbers, texts, lists and arrays."""
        ...


class TimeModel(Protocol):
    """A model that has not learned yet."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def fit(self, table: TrainingTable, groups: Texts | None = None) -> FittedModel:
        """Learn from measured launches; the order of the rows does not matter.

        Parameters
        ----------
        table : TrainingTable
            Rows without a measured time, or without what the model needs, are left out.
        groups : ndarray of object (str), shape (n,), optional
            What is unseen when the model is used, the kernels when left out: hyperparameters,
            gate and intervals are chosen on groups held out as a whole.

        Raises
        ------
        InputError
            If fewer than two groups are left.
        """
        ...


def check_coverage(coverage: float) -> None:
    """Refuse a coverage that is no share."""
    if not 0 < coverage < 1:
        msg = f"coverage {coverage}: give a share between 0 and 1, such as {COVERAGE}"
        raise InputError(msg)


def check_schema(expected: str, schema: FeatureSchema) -> None:
    """Refuse another schema of features than a model's."""
    if schema.id != expected:
        msg = (
            f"the model was trained on features of schema {expected}, these are of "
            f"{schema.id}; train anew, or take a model of that schema"
        )
        raise InputError(msg)
