"""The answer: seconds with an interval, and what stands behind them."""

import math
from dataclasses import dataclass, field, replace
from html import escape
from statistics import mean, median, quantiles
from typing import Final

from kernelcast.records.contention import Interval
from kernelcast.records.device import SaturationPoint
from kernelcast.records.errors import KernelcastError
from kernelcast.records.explanation import Explanation, PieceFacts, Tier
from kernelcast.records.frames import Frame, make_frame
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import LaunchIdentity

_WIDTH: Final = 360
_MARGIN: Final = 60
"""Room for half a label at each end, in pixels as the width."""
_LINE_AT: Final = 14
_DESCRIBED: Final = (
    "ndrange", "saturation", "interval", "estimates_s", "build_seconds", "identity", "explanation",
    "measurement",
)  # fmt: skip
"""Fields of an estimate that JSON has in a form of their own."""
NOTHING: Final = "-"
_TIMES: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
__all__ = ["DeviceAnswer", "Estimate", "Explanation", "Interval", "Measurement", "Tier"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Whole runs of the unchanged kernel, for comparison."""

    durations_s: tuple[float, ...]
    """Each whole run, in seconds, in the order they ran."""
    slowdown: float = 1.0
    """How many times as long they took beside other programs as they would have alone."""

    @property
    def seconds(self) -> float:
        """Median of the runs, in seconds."""
        return median(self.durations_s)

    @property
    def noise(self) -> float:
        """Half the 10-90 % spread over the median: what repeated runs differ by."""
        if len(self.durations_s) < 2:
            return 0.0
        low, *_, high = quantiles(self.durations_s, n=10, method="inclusive")
        return (high - low) / 2 / self.seconds

    @property
    def one_run_error(self) -> float | None:
        """Mean of what one run is off the median of the others: no prediction does much better.

        None with fewer than three runs.
        """
        if len(self.durations_s) < 3:
            return None
        others = [
            median((*self.durations_s[:place], *self.durations_s[place + 1 :]))
            for place in range(len(self.durations_s))
        ]
        pairs = zip(self.durations_s, others, strict=True)
        return mean(abs(one - other) / other for one, other in pairs)

    def error_of(self, alone_s: float) -> float:
        """Signed relative error of a time alone, times what slowed the runs: (p - m) / m."""
        return (alone_s * self.slowdown - self.seconds) / self.seconds

    def to_dict(self, predicted_s: float) -> dict[str, object]:
        """Convert the runs and the error of a prediction, a time alone, to plain values."""
        return {
            "measured_seconds": self.seconds,
            "measured_runs": len(self.durations_s),
            "measured_slowdown": self.slowdown,
            "noise": self.noise,
            "one_run_error": self.one_run_error,
            "error": self.error_of(predicted_s),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCost:
    """Time that an answer took when it was made, by what it went into."""

    sampling_s: float
    """Device time of the samples, in seconds."""
    build_s: float
    """Host time of the device's compiler, or of finding what it had built, in seconds."""
    rest_s: float
    """Everything else, in seconds: buffers, probes, analysis, counting, pauses between samples, the
    start of a process."""

    @property
    def total_s(self) -> float:
        """All of it, in seconds."""
        return self.sampling_s + self.build_s + self.rest_s

    def to_dict(self, kernel_s: float) -> dict[str, float]:
        """Convert it to plain values, with its multiple of the kernel's predicted time."""
        return {
            "seconds": self.total_s,
            "sampling_seconds": self.sampling_s,
            "build_seconds": self.build_s,
            "rest_seconds": self.rest_s,
            "relative": self.total_s / kernel_s,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """How long a launch will take on one device."""

    device: str
    """The device's name."""
    device_id: str
    """Its stable id."""
    kernel: str
    """The kernel's name."""
    ndrange: NDRange
    """The launch, local size chosen."""
    compute_units: int
    """Of the device."""
    saturation: SaturationPoint | None = None
    """P_sat by rules and by measurement; None where no device was asked."""
    sample_work_groups: tuple[int, int] = (0, 0)
    """P1 and P2: work-groups of a shorter and of a longer sampling launch; where all are of one
    size, of one launch and of all together; zeros without samples."""
    sampled_work_groups: int = 0
    """Work-groups that ran in all sampling launches together."""
    interval: Interval
    """The prediction, in seconds: the time on a machine that does nothing else."""
    tier: Tier
    """How it was obtained."""
    estimates_s: dict[str, float] = field(default_factory=dict)
    """Every method's answer side by side, in seconds."""
    sampling_seconds: float = 0.0
    """Device time of the sampling launches, and of work-groups that ran to warm up."""
    overhead_seconds: float = 0.0
    """Host time of everything else but whole runs: build, buffers, warm-up, counting for learned
    models, the start of a process."""
    warnings: tuple[str, ...] = ()
    """What the reader should know."""
    limiter: str | None = None
    """What bounds the kernel's time; None where no analytic model has answered."""
    in_domain: bool = True
    """Whether the launch resembles what the method was made for."""
    measurement: Measurement | None = None
    """Whole runs, where they were asked for."""
    build_seconds: float = 0.0
    """The part of `overhead_seconds` that the device's compiler took, at the first launch too
    (PoCL), or finding what it had built before."""
    compile_seconds: float | None = None
    """Host time of building the kernel where nothing of it is kept; None where it was not built for
    the answer."""
    launch_seconds: float | None = None
    """Time of a launch that does nothing; None where it is not known."""
    identity: LaunchIdentity | None = None
    """What observations of the launch are stored under; None where the arguments' contents are not
    known."""
    explanation: Explanation | None = None
    """See `explain`."""

    def explain(self) -> Explanation:
        """Say how the answer was obtained, and why not in a better way."""
        known = self.explanation or Explanation(tier=self.tier)
        return replace(known, tier=self.tier, methods_s=self.estimates_s)

    def list_pieces(self) -> tuple[PieceFacts, ...]:
        """List the evidence that it was put together of, with weights."""
        return () if self.explanation is None else self.explanation.pieces

    def to_row(self) -> dict[str, object]:
        """List what a table of estimates shows; a column ``METHOD_s`` for each method's answer."""
        from kernelcast.records.plain import pick

        return {
            **pick(
                self, "device_id", "device", "kernel", global_size="ndrange.global_size",
                local_size="ndrange.local_size", work_groups="ndrange.work_group_count",
                seconds="seconds", low_s="low", high_s="high", coverage="coverage",
                now_s="now.seconds", now_low_s="now.low", now_high_s="now.high",
                tier="tier.value", limiter="limiter", in_domain="in_domain",
                sampling_s="sampling_seconds", overhead_s="overhead_seconds",
                build_s="build_seconds", cost_s="cost.total_s", compile_s="compile_seconds",
                launch_s="launch_seconds", measured_s="measurement.seconds",
                noise="measurement.noise", one_run_error="measurement.one_run_error",
                relative_error="error", warnings="warnings",
            ),
            **{f"{name}_s": seconds for name, seconds in self.estimates_s.items()},
        }  # fmt: skip

    def __str__(self) -> str:
        now = "" if self.now is None else f"; now, beside other programs, {_describe(self.now)}"
        return f"{self.kernel} on {self.device}: {_describe(self.interval)}, {self.tier}{now}"

    def _repr_html_(self) -> str:
        rows = [
            ("kernel", self.kernel),
            ("device", self.device),
            ("predicted", _describe(self.interval)),
            *([] if self.now is None else [("now, beside other programs", _describe(self.now))]),
            ("tier", str(self.tier)),
        ]
        measured_s = None if self.measurement is None else self.measurement.seconds
        if measured_s is not None:
            rows.append(("measured", format_seconds(measured_s)))
        for piece in self.list_pieces():
            weight = f"{format_seconds(piece.seconds)}, weight {piece.weight * 100:.0f} %"
            text = f"{weight}: {piece.note}" if piece.note else weight
            rows.append((piece.kind.replace("_", " "), text))
        rows += [("warning", warning) for warning in self.warnings]
        lines = (
            f'<tr><th style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in rows
        )
        picture = draw_interval(self.low, self.seconds, self.high, measured_s)
        return f'<table>{"".join(lines)}<tr><td colspan="2">{picture}</td></tr></table>'

    def to_dict(self) -> dict[str, object]:
        """Convert the estimate to plain values for JSON: what `kernelcast estimate --json` prints.

        The name of the problem is missing, which only a `DeviceAnswer` knows.
        """
        from kernelcast.records.plain import keep_finite, list_methods, to_plain

        now, saturation, explanation = self.now, self.saturation, self.explain()
        methods = list_methods(self.estimates_s)
        return {
            **to_plain(self, omit=_DESCRIBED),
            **to_plain(self.interval),
            "global_size": list(self.ndrange.global_size),
            "local_size": list(self.ndrange.known_local_size),
            "work_groups": self.ndrange.work_group_count,
            "p_sat": saturation.p_sat.value if saturation else None,
            "p_sat_computed": saturation.computed if saturation else None,
            "p_sat_measured": saturation.measured if saturation else None,
            "now": None if now is None else {
                **to_plain(now, omit=("coverage",)), "slowdown": now.seconds / self.seconds,
            },
            "estimates": methods,
            "cost": self.cost.to_dict(self.seconds),
            "explanation": {
                **to_plain(explanation, omit=("methods_s",)), "methods": methods,
                "limiters": keep_finite(explanation.limiters),
            },
            **({} if self.measurement is None else self.measurement.to_dict(self.seconds)),
        }  # fmt: skip

    def to_frame(self) -> Frame:
        """Make a DataFrame of one row; `kernelcast.to_frame` takes many."""
        return make_frame([self.to_row()])

    @property
    def cost(self) -> AnswerCost:
        """What the answer has cost: sampling, build and the rest."""
        return AnswerCost(
            sampling_s=self.sampling_seconds,
            build_s=self.build_seconds,
            rest_s=max(self.overhead_seconds - self.build_seconds, 0.0),
        )

    @property
    def now(self) -> Interval | None:
        """The time beside the programs that were at work meanwhile; None on an idle machine."""
        seen = None if self.explanation is None else self.explanation.contention
        return seen.slow(self.interval) if seen is not None and seen.is_noticeable else None

    @property
    def expected(self) -> Interval:
        """What a run right afterwards is held against: the time as it is now."""
        return self.now or self.interval

    @property
    def seconds(self) -> float:
        """The predicted time of the whole launch, in seconds."""
        return self.interval.seconds

    @property
    def low(self) -> float:
        """Lower end of the interval, in seconds."""
        return self.interval.low

    @property
    def high(self) -> float:
        """Upper end of the interval, in seconds."""
        return self.interval.high

    @property
    def coverage(self) -> float:
        """What share of true times the interval is meant to hold."""
        return self.interval.coverage

    @property
    def error(self) -> float | None:
        """Signed relative error in the state that whole runs were measured in."""
        return None if self.measurement is None else self.measurement.error_of(self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAnswer:
    """What one device said to one problem: an estimate, or why there is none.

    Raises
    ------
    KernelcastError
        If both or neither of `estimate` and `error` are given.
    """

    device_id: str
    """Stable id of the device."""
    device: str
    """Its name."""
    problem: str
    """Name of the problem."""
    kernel: str
    """Name of its kernel."""
    estimate: Estimate | None = None
    """The answer."""
    error: KernelcastError | None = None
    """Why the device has no answer."""

    def __post_init__(self) -> None:
        if (self.estimate is None) == (self.error is None):
            msg = f"{self.problem} on {self.device_id}: give either an estimate or an error"
            raise KernelcastError(msg)

    def to_row(self) -> dict[str, object]:
        """List the problem, the estimate's row, and why there is none."""
        return {
            "problem": self.problem,
            "device_id": self.device_id,
            "device": self.device,
            "kernel": self.kernel,
            **({} if self.estimate is None else self.estimate.to_row()),
            "error_message": None if self.error is None else str(self.error),
        }

    def to_dict(self) -> dict[str, object]:
        """Convert the answer to what `kernelcast estimate --json` prints."""
        if self.estimate is not None:
            return {"problem": self.problem, **self.estimate.to_dict()}
        return {
            "device": self.device,
            "device_id": self.device_id,
            "problem": self.problem,
            "kernel": self.kernel,
            "error_message": str(self.error),
        }

    def to_frame(self) -> Frame:
        """Make a DataFrame of one row; `kernelcast.to_frame` takes many."""
        return make_frame([self.to_row()])


def _describe(interval: Interval) -> str:
    return (
        f"{format_seconds(interval.seconds)} "
        f"({format_range(interval.low, interval.high)} with {interval.coverage * 100:g} % coverage)"
    )


def draw_interval(low_s: float, seconds: float, high_s: float, measured_s: float | None) -> str:
    """Draw a prediction as a dot on its interval, and as a stroke what was measured, if it was."""
    times = [low_s, seconds, high_s] + ([] if measured_s is None else [measured_s])
    first, last = min(times), max(times)
    scale = (_WIDTH - 2 * _MARGIN) / ((last - first) or 1.0)
    low, dot, high = (_MARGIN + (one - first) * scale for one in (low_s, seconds, high_s))
    words = f"{format_seconds(seconds)}, from {format_seconds(low_s)} to {format_seconds(high_s)}"
    parts = [
        f'<path d="M{low:.1f} {_LINE_AT}H{high:.1f}M{low:.1f} {_LINE_AT - 5}v10'
        f'M{high:.1f} {_LINE_AT - 5}v10" stroke="currentColor" stroke-width="2" fill="none"/>',
        f'<circle cx="{dot:.1f}" cy="{_LINE_AT}" r="4.5" fill="currentColor"/>',
    ]
    labels = {low: low_s, high: high_s} if high - low > _MARGIN else {low: low_s}
    for at, shown_s in labels.items():
        parts.append(
            f'<text x="{at:.1f}" y="40" font-size="11" text-anchor="middle" fill="currentColor">'
            f"{escape(format_seconds(shown_s))}</text>"
        )
    if measured_s is not None:
        at = _MARGIN + (measured_s - first) * scale
        parts.append(f'<path d="M{at:.1f} {_LINE_AT - 10}v20" stroke="#c2410c" stroke-width="2"/>')
        words += f"; measured {format_seconds(measured_s)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="44" '
        f'viewBox="0 0 {_WIDTH} 44" role="img"><title>{escape(words)}</title>'
        f"{''.join(parts)}</svg>"
    )


def unit_of_time(seconds: float) -> tuple[float, str]:
    """Choose the scale and the name of the unit in which a time is best read."""
    # What rounds to the next unit is read in it: 1000 us is 1 ms.
    return next((one for one in _TIMES if seconds >= 0.9995 * one[0]), _TIMES[-1])


def format_seconds(seconds: float | None) -> str:
    """Write a time with three digits and the unit that suits it."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    scale, unit = unit_of_time(abs(seconds))
    return f"{format_digits(seconds / scale)} {unit}"


def format_range(low_s: float, high_s: float) -> str:
    """Write an interval of times in one unit."""
    scale, unit = unit_of_time(high_s)
    return f"{format_digits(low_s / scale)} - {format_digits(high_s / scale)} {unit}"


def format_digits(value: float | None) -> str:
    """Write a number with three digits, large ones whole."""
    if value is None:
        return NOTHING
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 99.95:
        return f"{value:,.0f}"
    return (
        f"{value:.1f}" if size >= 9.995 else f"{value:.2f}" if size >= 0.9995 else f"{value:#.3g}"
    )
