"""The estimator of an answer: pieces of what is known, a correction, and one interval.

`EvidenceModel` turns what is known of a launch into pieces with variances, corrects what is fused
of them by what it has learned of such launches, and surrounds the result.
`kernelcast.models.evidence.calibration.calibrate` fits it.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.resources import files
from statistics import NormalDist, median

import numpy as np
import numpy.typing as npt

from kernelcast.models.evidence.fusion import FusedEstimate, Kind, Piece, fuse
from kernelcast.models.evidence.sizes import (
    MEASURES,
    KnownSize,
    SizeSettings,
    noise_variance,
)
from kernelcast.models.linear import BEYOND_SPREAD, fit_linear
from kernelcast.models.regression import Calibration, FittedRegression, make_columns
from kernelcast.models.versioned_files import (
    CONVERTER,
    Document,
    ModelFileError,
    VersionedFiles,
)
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Interval
from kernelcast.records.samples import SampleRun
from kernelcast.records.training_table import Numbers

SIGNS = (
    "error", "spread", "uneven", "imbalance", "is_imbalance_unknown", "indirect", "sampled_s",
    "intercept",
)  # fmt: skip
"""What the variance of a moment's samples depends on, see `read_moment`."""
# A bias is halved where so few kernels tell it.
_KERNELS_OF_DOUBT = 10
# ln of the least and greatest standard deviation: 1 % and e.
_NARROWEST, _WIDEST = -4.5, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledMoment:
    moment: str
    log_seconds: float
    """Natural logarithm of the whole launch's time in seconds, by the line through the samples."""
    signs: tuple[float, ...]
    at_s: float | None = None
    """When they were taken, in UNIX seconds; None where that is not known."""
    is_busy: bool = False

    def __post_init__(self) -> None:
        numbers = (self.log_seconds, *self.signs)
        if len(self.signs) != len(SIGNS) or not all(map(math.isfinite, numbers)):
            raise InputError(
                f"moment {self.moment}: ln seconds {self.log_seconds}, signs {self.signs}; "
                f"expected {len(SIGNS)} signs, and finite numbers"
            )


def read_moment(
    run: SampleRun, *, moment: str, imbalance: float = math.nan, indirect: float = 0.0
) -> SampledMoment:
    """Fit the line through samples of one moment, and note what its error depends on."""
    fit = fit_linear(run)
    rates = [one.duration_s / one.mean_work_groups for one in run.launches]
    is_unknown = math.isnan(imbalance)
    shortest_s = min(one.duration_s for one in run.launches)
    # An imbalance of source counts beyond this foretells no more.
    return SampledMoment(
        moment=moment,
        log_seconds=math.log(fit.seconds),
        at_s=run.at_s or None,
        is_busy=run.contention is not None and run.contention.is_noticeable,
        signs=(
            math.log(fit.standard_error_s / fit.seconds + 0.005),
            math.log(float(np.std(np.log(rates))) + 0.01),
            0.0 if run.is_even else 1.0,
            0.0 if is_unknown else math.log(min(max(imbalance, 1.0), 8.0)),
            1.0 if is_unknown else 0.0,
            indirect,
            math.log(run.sampling_s),
            min(max(fit.intercept_s / shortest_s, 0.0), 1.0),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleVariance:
    bias: float
    """Median of ln sampled over ln measured time."""
    level: float
    """ln of the usual standard deviation."""
    centre: tuple[float, ...]
    slopes: tuple[float, ...]
    """Of the signs; the slopes are of ln standard deviation."""

    def variance(self, signs: Sequence[float]) -> float:
        found = self.level
        for sign, centre, slope in zip(signs, self.centre, self.slopes, strict=True):
            found += slope * (sign - centre)
        return math.exp(2.0 * min(max(found, _NARROWEST), _WIDEST))


def fit_samples(residuals: Numbers, signs: Numbers, groups: npt.NDArray[np.intp]) -> SampleVariance:
    kernels = len(np.unique(groups))
    bias = float(np.median(residuals)) * kernels / (kernels + _KERNELS_OF_DOUBT)
    shares = 1.0 / np.bincount(groups)[groups]
    shares /= shares.sum()
    sizes = np.log(np.abs(residuals - bias) + 0.01)
    level = float(shares @ sizes)
    centre = shares @ signs
    moved = signs - centre
    spread = np.sqrt(shares @ moved**2)
    spread[spread == 0] = 1.0
    moved /= spread
    penalty = 0.1 * (1.0 + _KERNELS_OF_DOUBT / kernels)
    normal = moved.T @ (shares[:, None] * moved) + penalty * np.eye(signs.shape[1])
    slopes = np.linalg.solve(normal, moved.T @ (shares * (sizes - level)))
    usual = np.exp(np.clip(level + moved @ slopes, _NARROWEST, _WIDEST))
    # Median of a squared standard normal variable.
    level += 0.5 * math.log(np.median(((residuals - bias) / usual) ** 2) / 0.455 + 1e-12)
    return SampleVariance(
        bias=bias,
        level=level,
        centre=tuple(centre.tolist()),
        slopes=tuple((slopes / spread).tolist()),
    )


SAMPLER = "sampler"
"""Basis of all pieces that rest on samples of the kernel."""
SHORT_S = 10e-3
"""Of launches that are much shorter, samples deviate by 0.6."""
USUAL_COVERAGE = 0.9
"""Where an interval that is known makes the deviation of a normal error."""
# Standardised errors beyond this count as this much: one kernel must not decide for the others.
_CLIP = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainVariance:
    """Bias and variance of a kind that nothing foretells the error of."""

    bias: float
    """Median of ln told over ln measured time."""
    variance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedErrors:
    """What pieces that rest on samples have in common, as shares of their variance."""

    # Unless learned: on the shipped rows, errors of sets of one moment correlate by 0.57 to 0.62,
    # those of two moments of a launch by 0.27 to 0.33, on each of four devices.

    launch: float = 0.3
    """Common to moments of one launch."""
    moment: float = 0.3
    """Common to samples of one moment, beside `launch`."""
    kernel: float = 0.2
    """Common to launches of one kernel: what the sampler gets wrong of it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvidenceModel:
    """Variances of pieces, and intervals around what is made of them; made by `calibrate`."""

    forms: Mapping[str, SampleVariance] = field(default_factory=dict)
    """Of samples, by an empty text; older files tell of ways of sampling on their own, too."""
    shared: SharedErrors = field(default_factory=SharedErrors)
    sizes: SizeSettings = field(default_factory=SizeSettings)
    plain: Mapping[Kind, PlainVariance] = field(default_factory=dict)
    correction: FittedRegression | None = None
    intervals: Mapping[str, Calibration] = field(default_factory=dict)
    """By the kinds that an estimate rests on, see `name_situation`."""
    widest: Mapping[str, float] = field(default_factory=dict)
    """Largest variance that each of `intervals` was calibrated with."""
    facts: Mapping[str, float | str] = field(default_factory=dict)
    """Rows and kernels behind it, and the digest of the rows."""
    samplers: tuple[int, ...] = ()

    def weigh_samples(
        self,
        moment: SampledMoment,
        past: Sequence[float] = (),
        *,
        age_s: float = 0.0,
        launch_log_seconds: float | None = None,
    ) -> Piece:
        variance = self.samples.variance(moment.signs)
        log_seconds = moment.log_seconds - self.samples.bias
        if past:
            share = self.shared.kernel
            trust = share * len(past) / (share * len(past) + 1.0 - share)
            log_seconds -= trust * min(max(median(past), -_CLIP), _CLIP) * math.sqrt(variance)
            variance *= 1.0 - share * trust
        aged = self.sizes.scale * self._age(age_s)
        told = moment.log_seconds if launch_log_seconds is None else launch_log_seconds
        unseen = find_uncalibrated(told, is_busy=moment.is_busy)
        return Piece(
            kind=Kind.SAMPLES,
            log_seconds=log_seconds,
            variance=variance + aged + unseen,
            moment=moment.moment,
            moment_variance=self.shared.moment * variance,
            basis=SAMPLER,
            basis_variance=self.shared.launch * variance + aged + unseen,
            at_s=moment.at_s,
            age_variance=aged,
            uncalibrated_variance=unseen,
        )

    @property
    def samples(self) -> SampleVariance:
        if "" not in self.forms:
            raise InputError("samples: the model was calibrated without samples")
        return self.forms[""]

    @property
    def usual_variance(self) -> float:
        """Variance of samples that were not taken yet."""
        return self.samples.variance(self.samples.centre)

    def judge_samples(self, moment: SampledMoment, log_seconds: float) -> float:
        """Return the error of samples in standard deviations, once a launch was measured."""
        error = moment.log_seconds - self.samples.bias - log_seconds
        return error / math.sqrt(self.samples.variance(moment.signs))

    def weigh_observation(
        self,
        log_seconds: float,
        noise: float,
        age_s: float = 0.0,
        *,
        moments: int = 1,
        repeats: int = 1,
    ) -> Piece:
        settings = self.sizes
        of_next = settings.usual_noise if moments == 1 else noise
        variance = noise_variance(settings, noise) / moments + noise_variance(settings, of_next)
        variance += self._age(age_s)
        count = "observed once" if repeats == 1 else f"observed {repeats} times"
        apart = f" at {moments} moments" if moments > 1 else ""
        when = f", {age_s:,.0f} s ago" if math.isfinite(age_s) else ""
        return Piece(
            kind=Kind.OBSERVED,
            log_seconds=log_seconds,
            variance=settings.scale * variance,
            repeats=repeats,
            note=f"{count}{apart}{when}",
        )

    def _age(self, age_s: float) -> float:
        aged = -math.expm1(-abs(age_s) / self.sizes.time_reach_s)
        return 2.0 * self.sizes.time_sd**2 * aged

    def know_estimate(self, size: KnownSize, fused: FusedEstimate) -> KnownSize:
        noise = math.sqrt(fused.variance) / max(self.sizes.noise_share, 1e-3)
        return replace(size, log_seconds=fused.log_seconds, noise=noise)

    def rest_on_samples(self, piece: Piece) -> Piece:
        """Take what sizes of the kernel say for what it is where they were estimated themselves.

        What the sampler gets wrong of the kernel, it gets wrong at each of them; it shares that
        with samples of this launch.
        """
        common = self.shared.kernel * self.usual_variance
        return replace(
            piece, kind=Kind.OTHER_ESTIMATES, variance=piece.variance + common, basis=SAMPLER,
            basis_variance=common,
        )  # fmt: skip

    def weigh_plain(self, kind: Kind, log_seconds: float, doubt: float = 0.0) -> Piece | None:
        """Make a piece of a model's time; a doubt widens its 90 % interval by so much."""
        found = self.plain.get(kind)
        if found is None or not math.isfinite(log_seconds):
            return None
        deviation = math.sqrt(found.variance) + doubt / find_normal_quantile(USUAL_COVERAGE)
        unseen = max(deviation**2 - found.variance, 0.0)
        return Piece(
            kind=kind,
            log_seconds=log_seconds - found.bias,
            variance=found.variance + unseen,
            basis_variance=unseen,
            uncalibrated_variance=unseen,
        )

    def find_correction(
        self, said: FusedEstimate, values: Mapping[str, float]
    ) -> tuple[float, float]:
        """Ask the correction about a launch: the logarithm of its factor, and the distance."""
        if self.correction is None or not values:
            return 0.0, 0.0
        told = list_answer_values(said, values)
        columns = make_columns({name: np.array([one]) for name, one in told.items()})
        factors, distances = self.correction.predict(columns)
        return float(factors[0]), float(distances[0])

    def correct(self, fused: FusedEstimate, values: Mapping[str, float]) -> FusedEstimate:
        """Correct what was fused, as far as it rests on what the correction has learned of."""
        share = fused.share_of(CORRECTED)
        if not share:
            return fused
        said = fuse([one for one in fused.pieces if one.kind in CORRECTED])
        return move(fused, *self.find_correction(said, values))

    def surround(self, fused: FusedEstimate, coverage: float) -> Interval:
        """Put an interval around an estimate: conformal, calibrated on unseen kernels."""
        pairs = zip(fused.pieces, fused.weights, strict=True)
        unseen = sum(weight * math.sqrt(one.uncalibrated_variance) for one, weight in pairs) ** 2
        variance = max(fused.variance - unseen, 1e-6)
        situation, normal = name_situation(fused.pieces), find_normal_quantile(coverage)
        calibration = self.intervals.get(situation)
        if calibration is None:
            width = normal * math.sqrt(variance * max(1.0, fused.disagreement**2))
            width *= max(fused.distance, 1.0)
        else:
            difficulty = describe_difficulty(replace(fused, variance=variance))
            width = calibration.half_width_alone(difficulty, coverage, fused.distance)
            beyond = variance - self.widest.get(situation, math.inf)
            width = math.hypot(width, normal * math.sqrt(max(beyond, 0.0)))
        width = math.hypot(width, normal * math.sqrt(unseen))
        return Interval.within(math.exp(min(width, 20.0)), fused.seconds, coverage)


CORRECTED = frozenset({Kind.SAMPLES, Kind.LEARNED, Kind.ANALYTIC})
_LEADING = (Kind.OBSERVED, Kind.OTHER_SIZES, Kind.SAMPLES, Kind.OTHER_ESTIMATES)


def list_answer_values(said: FusedEstimate, values: Mapping[str, float]) -> dict[str, float]:
    """Put a fused time and its deviation in the place of the linear model's."""
    return {**values, "linear_s": said.seconds, "linear_error": math.sqrt(said.variance)}


def move(fused: FusedEstimate, factor: float, distance: float) -> FusedEstimate:
    """Move an estimate by a correction, as far as it rests on what that has learned of."""
    share = fused.share_of(CORRECTED)
    moved = share * factor
    # Factor of an interval of launches far from those that were learned from: a correction has
    # faded there, and the samples are what they are.
    return replace(
        fused,
        log_seconds=fused.log_seconds + moved,
        correction=moved,
        # Of an answer that rests on other things, strangeness of its samples counts less.
        distance=min(distance, 1.5) ** share if distance > 1.0 else distance,
    )


def name_situation(pieces: Sequence[Piece]) -> str:
    """Name what an estimate rests on: its measured kinds, or the others where there are none."""
    kinds = {one.kind for one in pieces}
    return "+".join(kind for kind in _LEADING if kind in kinds) or "+".join(sorted(kinds))


def describe_difficulty(fused: FusedEstimate) -> tuple[float, ...]:
    """List what an interval's width depends on: variance, disagreement, correction, strangeness."""
    return (
        0.5 * math.log(fused.variance),
        math.log(1.0 + fused.disagreement),
        math.log(abs(fused.correction) + 0.01),
        math.log(max(fused.distance, 0.1)),
    )


SIGNS_OF_DIFFICULTY = 4


@lru_cache(maxsize=16)
def find_normal_quantile(coverage: float) -> float:
    """Return the standard deviations within which a share of normal errors lies."""
    return NormalDist().inv_cdf((1.0 + coverage) / 2.0)


def find_uncalibrated(log_seconds: float, *, is_busy: bool = False) -> float:
    """Find the variance of samples that no calibration has seen: short launches, busy machines."""
    # Deviation of what samples say beside other programs, which take caches between launches.
    busy = 0.2 if is_busy else 0.0
    seconds = math.exp(log_seconds)
    # The shortest launches that were calibrated took 0.1 s: far shorter ones find their data in
    # caches when they are repeated, and the noise of a moment is as large as their work.
    short = 0.6 / (1.0 + (seconds / SHORT_S) ** 2) if seconds < 0.1 else 0.0
    return busy**2 + short**2


ASSUMED_FACTOR = 3.0
"""Between a time of the analytic model and the ends of its 90 % interval, where no error of it is
known: the worst of the CPU model's answers to 18 examples on two devices was off by a factor of
2.8."""
# The sign of a line without any error of its own, see `read_moment`; where the line is less sure,
# samples are worse, by a factor of 1.9 where its standard error is 10 %.
_NO_ERROR, _SLOPE = math.log(0.005), 0.2
ASSUMED_ERRORS = PlainVariance(
    bias=0.0, variance=(math.log(ASSUMED_FACTOR) / find_normal_quantile(USUAL_COVERAGE)) ** 2
)
BUILT_IN = EvidenceModel(
    forms={
        "": SampleVariance(
            bias=0.0,
            level=math.log(BEYOND_SPREAD),
            centre=(_NO_ERROR, *(0.0 for _ in SIGNS[1:])),
            slopes=(_SLOPE, *(0.0 for _ in SIGNS[1:])),
        )
    },
    plain={Kind.ANALYTIC: ASSUMED_ERRORS},
)
"""Of devices that nothing was calibrated for: spreads as they were found over devices, no biases,
and intervals of normal errors."""


_DOCUMENT = Document(
    kind=EvidenceModel, what="evidence model", advice="calibrate again",
    header={"evidence_model": 2, "signs": list(SIGNS), "measures": list(MEASURES)},
    # More digits would tell processors apart, on which sums are rounded differently.
    digits=7, options={"sort_keys": True},
)  # fmt: skip
model_to_json, model_from_json = _DOCUMENT.write, _DOCUMENT.read


def load_evidence(
    files: VersionedFiles, name: str, version: str | None = None, *, sampler: int | None = None
) -> EvidenceModel:
    """Load a version: the one given, else the pinned one, else the latest."""
    content, url = files.load(name, version)
    found = model_from_json(content, url)
    if sampler is not None and sampler not in found.samplers:
        known = ", ".join(map(str, found.samplers)) or "none"
        raise ModelFileError(
            f"{url}: was calibrated with samples of revision {known} of the sampler, not "
            f"{sampler}; `kernelcast train` calibrates anew on rows collected with that"
        )
    return found


ANY = "any"
"""Stands for runtimes that nothing was measured on."""
FILE = "analytic_errors.json"


def find_half_width(errors: Calibration, coverage: float) -> float:
    """Return the logarithm of the factor between an analytic time and the ends of its interval."""
    return errors.half_width_alone((0.0,) * SIGNS_OF_DIFFICULTY, coverage, 1.0)


@lru_cache(maxsize=64)
def know_analytic(model: EvidenceModel, runtime: str) -> EvidenceModel:
    """Return an evidence model that knows how far analytic times are off on a runtime."""
    shipped = load_shipped()
    errors = shipped.get(runtime) or shipped[ANY]
    width = find_half_width(errors, USUAL_COVERAGE)
    deviation = width / find_normal_quantile(USUAL_COVERAGE)
    return replace(
        model,
        plain={**model.plain, Kind.ANALYTIC: PlainVariance(bias=0.0, variance=deviation**2)},
        intervals={**model.intervals, Kind.ANALYTIC.value: errors},
    )


@cache
def load_shipped() -> Mapping[str, Calibration]:
    """Load the errors of the analytic model of CPUs on the corpus, by runtime.

    Nothing that is known of a launch tells how large its error is, so that an interval depends on
    the runtime only. Runtimes that nothing was measured on have the intervals of all together.
    """
    text = (files("kernelcast.models.evidence") / FILE).read_text(encoding="utf-8")
    return {name: CONVERTER.structure(one, Calibration) for name, one in json.loads(text).items()}
