"""What a tuning is asked for, and what it has found, as records and JSON."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from statistics import median
from typing import Any

from kernelcast.launches.settings import check_timeout
from kernelcast.records.errors import InputError
from kernelcast.records.plain import to_plain
from kernelcast.records.problem import Problem


class TuneModels(StrEnum):
    """What ranks configurations."""

    ANALYTIC = "analytic"
    """The analytic model alone; nothing runs."""
    HYBRID = "hybrid"
    """A few work-groups of the configurations that the analytic model likes best run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneSettings:
    """How configurations are ranked and measured.

    Raises
    ------
    InputError
        If a number is out of its range.
    """

    models: TuneModels = TuneModels.ANALYTIC
    """What ranks."""
    top: int = 5
    """Configurations that are shown, and measured where that is asked for."""
    measure: bool = False
    """Whether they are measured."""
    runs: int = 7
    """Measured runs of each, in turn; the median counts."""
    sampled: int = 10
    """Configurations that `TuneModels.HYBRID` samples."""
    seed: int = 0
    """Of random buffers and sampled places."""
    timeout_s: float = 60.0
    """A configuration that runs for longer is given up, in seconds."""

    def __post_init__(self) -> None:
        least = {"top": self.top, "runs": self.runs, "sampled": self.sampled}
        for name, value in least.items():
            if value < 1:
                raise InputError(f"{name} {value}: give at least 1")
        check_timeout(self.timeout_s)


UNKNOWN = 3
"""Grade of a configuration of which nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedConfiguration:
    """What is known of a configuration."""

    number: int
    """Place in the search space, from 0."""
    parameters: Mapping[str, int | float]
    """Values of what is searched over."""
    problem: Problem | None = None
    """Its launch; None where the values allow none."""
    global_size: tuple[int, ...] = ()
    local_size: tuple[int, ...] = ()
    """Of its launch; empty where there is none."""
    build_options: tuple[str, ...] = ()
    predicted_s: float | None = None
    """By the analytic model, in seconds."""
    sampled_s: float | None = None
    """By a few work-groups that ran, in seconds."""
    runs_s: tuple[float, ...] = ()
    """Measured whole runs, in seconds."""
    build_s: float = 0.0
    """Host time of building it and of its first run, in seconds; 0 if it was not built."""
    obstacle: str = ""
    """Why it cannot be launched."""
    limiter: str = ""
    """What the analytic model says bounds it."""
    note: str = ""
    """What the model did not understand."""

    @property
    def measured_s(self) -> float | None:
        """Median of the measured runs, in seconds."""
        return median(self.runs_s) if self.runs_s else None

    @property
    def expected_s(self) -> float | None:
        """The best that is known: measured, else sampled, else predicted, in seconds."""
        return (self.measured_s, self.sampled_s, self.predicted_s, None)[self.grade]

    @property
    def grade(self) -> int:
        """How far it was looked at: 0 measured, 1 sampled, 2 predicted, 3 nothing known."""
        known = (self.measured_s, self.sampled_s, self.predicted_s)
        return next((grade for grade, one in enumerate(known) if one is not None), UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneReport:
    """How a kernel is best launched on a device."""

    problem: str
    """The problem's name."""
    kernel: str
    """Its kernel's."""
    device: str
    """The device's name."""
    device_id: str
    """Its id."""
    names: tuple[str, ...]
    """What was searched over."""
    models: TuneModels
    """What ranked."""
    configurations: tuple[TunedConfiguration, ...]
    """Best first: measured ones by their medians, then sampled ones, then predicted ones, then
    those that cannot be launched."""
    models_s: float
    """Host time of ranking by models, in seconds."""
    sampling_s: float = 0.0
    """Host time of sampling, builds included, in seconds."""
    measuring_s: float = 0.0
    """Host time of measuring, builds included, in seconds."""
    warnings: tuple[str, ...] = ()
    """What to know."""

    @property
    def pick(self) -> TunedConfiguration | None:
        """The configuration to use; None if none can be launched."""
        known = (one for one in self.configurations if one.grade < UNKNOWN and not one.obstacle)
        return next(known, None)

    @property
    def valid_count(self) -> int:
        """Configurations that can be launched, as far as is known."""
        return sum(not one.obstacle for one in self.configurations)


def sort_configurations(
    found: Mapping[int, TunedConfiguration],
) -> tuple[TunedConfiguration, ...]:
    """Put the best first; what cannot be launched comes last."""
    return tuple(sorted(found.values(), key=lambda one: (
        bool(one.obstacle), one.grade, one.expected_s or math.inf, one.number
    )))  # fmt: skip


def report_to_json(report: TuneReport, *, top: int | None = None) -> dict[str, Any]:
    """Return a report as plain values; times are in seconds."""
    pick = report.pick
    return {
        **to_plain(report, omit=("names", "configurations")),
        "searched": list(report.names),
        "configurations_total": len(report.configurations),
        "configurations_valid": report.valid_count,
        "pick": None if pick is None else _describe(pick),
        "configurations": [_describe(one) for one in report.configurations[:top]],
    }


def _describe(one: TunedConfiguration) -> dict[str, Any]:
    return {
        **to_plain(one, omit=("number", "problem", "runs_s", "build_s", "note")),
        "seconds": one.expected_s,
        "measured_seconds": one.measured_s,
        "measured_runs": list(one.runs_s),
        "limiter": one.limiter or None,
        "obstacle": one.obstacle or None,
    }


_INVALIDITIES = (
    ("no answer within", "timeout"), ("compiler", "compile"), ("process", "runtime"),
    ("could not be run", "runtime"),
)  # fmt: skip


def report_to_t4(report: TuneReport) -> dict[str, Any]:
    """Write measured configurations and those that were refused in the T4 format, in ms."""
    results: list[dict[str, Any]] = []
    for one in report.configurations:
        measured, obstacle = one.measured_s, one.obstacle
        if measured is None and not (obstacle and one.local_size):
            continue
        invalidity = next((one for words, one in _INVALIDITIES if words in obstacle), "constraints")
        results.append({
            "timestamp": datetime.now(tz=UTC).isoformat(timespec="seconds"),
            "configuration": dict(one.parameters),
            "times": {
                "compilation": one.build_s * 1e3, "runtimes": [run * 1e3 for run in one.runs_s],
            },
            "invalidity": invalidity if measured is None else "correct",
            # Results are not compared with a reference: 0 would say that they were found wrong.
            "correctness": 0 if measured is None else 1,
            "measurements": (
                []
                if measured is None
                else [{"name": "time", "value": measured * 1e3, "unit": "ms"}]
            ),
            "objectives": ["time"],
        })  # fmt: skip
    return {
        "schema_version": "1.0.0",
        "metadata": {"timeunit": "milliseconds"},
        "results": results,
    }
