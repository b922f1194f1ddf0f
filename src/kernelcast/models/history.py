"""History: this very launch was measured before; the linear model where it was not.

A launch counts as the same where problem and device are equal. On kernels that are held out it
is the linear model, by construction: it shows what memory is worth, and nothing else.
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import cast

import numpy as np

from kernelcast.models.learned.learner import State
from kernelcast.models.protocol import COVERAGE, Forecast, check_coverage, check_schema
from kernelcast.models.references import LINEAR, require_seconds
from kernelcast.models.rules import FittedRule, RuleModel
from kernelcast.records.training_table import Numbers, Texts, TrainingTable

# Half the 10-90 % spread of normal noise, in standard deviations.
_SPREAD = NormalDist().inv_cdf(0.9)
# Repeats on another day differ by at least so much.
_LEAST_NOISE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryModel:
    """Remembers launches."""

    name: str = "history"

    def fit(self, table: TrainingTable, groups: Texts | None = None) -> "FittedHistory":
        """Remember medians; see `kernelcast.models.protocol.TimeModel.fit`."""
        measured = np.isfinite(table.seconds) & (table.problems != "")
        launches = table.frame[measured].groupby(["problems", "devices"])
        times = launches["seconds"]
        within = launches["noise"].median().fillna(0.0).to_numpy()
        between = _SPREAD * times.agg(lambda some: np.log(some).std(ddof=0)).to_numpy()
        medians = times.median()
        return FittedHistory(
            model=self,
            fallback=RuleModel(name=self.name).fit(table, groups),
            launches={launch: place for place, launch in enumerate(medians.index)},
            seconds=medians.to_numpy(),
            # The larger of the noise within runs and between repeated measurements.
            noise=np.maximum(np.maximum(within, between), _LEAST_NOISE),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedHistory:
    """Launches that were measured; made by `HistoryModel.fit`."""

    model: HistoryModel
    fallback: FittedRule
    launches: dict[tuple[str, str], int]
    seconds: Numbers
    noise: Numbers

    @property
    def name(self) -> str:
        """What reports call it."""
        return self.model.name

    def predict(self, table: TrainingTable) -> Numbers:
        """Give medians of earlier measurements, or the linear model's time, in seconds."""
        check_schema(self.fallback.schema_id, table.schema)
        places = self._find(table)
        known = places >= 0
        seconds = np.empty(len(table))
        seconds[known] = self.seconds[places[known]]
        seconds[~known] = require_seconds(self.name, LINEAR, table.take(~known))
        return seconds

    def forecast(self, table: TrainingTable, coverage: float = COVERAGE) -> Forecast:
        """Give times with intervals: the noise of repeats where a launch is known."""
        check_coverage(coverage)
        places = self._find(table)
        known = places >= 0
        seconds = self.predict(table)
        factor = np.empty(len(table))
        quantile = NormalDist().inv_cdf((1 + coverage) / 2)
        factor[known] = np.exp(quantile * self.noise[places[known]] / _SPREAD)
        unseen = self.fallback.forecast(table.take(~known), coverage)
        factor[~known] = unseen.high / unseen.seconds
        return Forecast.around(seconds, factor, coverage)

    def describe(self) -> dict[str, object]:
        """Say what was learned."""
        return {**self.fallback.describe(), "name": self.name, "launches": len(self.launches)}

    def state(self) -> State:
        """Give everything as plain values and arrays."""
        launches = sorted(self.launches)
        return {
            "fallback": self.fallback.state(),
            "problems": [problem for problem, _ in launches],
            "devices": [device for _, device in launches],
            "seconds": self.seconds,
            "noise": self.noise,
        }

    def _find(self, table: TrainingTable) -> np.ndarray:
        return np.array([self.launches.get(one, -1) for one in _launches(table)], dtype=np.intp)


def restore_launches(state: State) -> dict[tuple[str, str], int]:
    """Give places of launches, of what a file holds."""
    problems = cast("list[str]", state["problems"])
    devices = cast("list[str]", state["devices"])
    pairs = zip(problems, devices, strict=True)
    return {(str(problem), str(device)): place for place, (problem, device) in enumerate(pairs)}


def _launches(table: TrainingTable) -> list[tuple[str, str]]:
    return list(zip(table.problems.tolist(), table.devices.tolist(), strict=True))
