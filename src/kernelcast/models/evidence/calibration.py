"""Learns variances, a correction and intervals from launches whose time was measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from kernelcast.models.evidence.fusion import FusedEstimate, Kind, Piece, fuse
from kernelcast.models.evidence.model import (
    EvidenceModel,
    PlainVariance,
    SampledMoment,
    SharedErrors,
    describe_difficulty,
    fit_samples,
    list_answer_values,
    name_situation,
)
from kernelcast.models.evidence.sizes import KnownSize, SizeSettings, fit_sizes, predict_size
from kernelcast.models.regression import (
    LEARNERS,
    FittedRegression,
    divide_groups,
    fit_regression,
    make_columns,
    number_groups,
)
from kernelcast.models.regression import calibrate as calibrate_interval

FOLDS = 5
"""Parts of the kernels; each part's intervals rest on what the others teach."""
ANSWERING = tuple(LEARNERS)
"""Regressors that may correct answers: the one is taken that errs least within the training."""
_CLIP = 3.0
# Two of these leave a piece an error of its own.
_LARGEST_SHARE = 0.4
_LEAST_SHARE = 0.01
_LEAST_ROWS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """A launch that was measured, and all that was known of it."""

    kernel: str
    """Kernel on its device: launches of one are sizes of each other, and are held out together."""
    size: KnownSize
    moments: tuple[SampledMoment, ...] = ()
    plain: Mapping[Kind, float]
    """Natural logarithms of seconds by the learned and the analytic model."""
    runs: tuple[float, ...] = ()
    family: str = ""
    """Kernels that resemble each other; a correction is judged on families it has not seen."""
    device: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    """Features and figures that a correction is learned from; see `make_columns`."""


def gather(
    model: EvidenceModel,
    row: EvidenceRow,
    others: Sequence[EvidenceRow] = (),
    what: str = "samples",
) -> list[Piece]:
    """Make pieces of a launch and of other sizes of its kernel, as an estimate would have them."""
    wanted = {*what.split("+")}
    found: list[Piece] = []
    if "samples" in wanted:
        past = [
            model.judge_samples(one, other.size.log_seconds)
            for other in (others if "sizes" in wanted else ())
            for one in other.moments
        ]
        found += [model.weigh_samples(one, past) for one in row.moments]
    # Beside sizes alone the models' times cost accuracy (7.9 instead of 7.1 % in the mean).
    if wanted & {"samples", "plain"}:
        plain = (model.weigh_plain(kind, one) for kind, one in row.plain.items())
        found += [one for one in plain if one is not None]
    if wanted & {"sizes", "estimates"}:
        known = [one.size for one in others]
        if "estimates" in wanted:
            known = [
                model.know_estimate(one.size, fuse(gather(model, one))) for one in others
                if one.moments
            ]  # fmt: skip
        if not known:
            return []
        size = row.size
        told = predict_size(known, model.sizes, size.log_work, size.at_s, size.working_set_bytes)
        found.append(model.rest_on_samples(told) if "estimates" in wanted else told)
    if "run" in wanted:
        if not row.runs:
            return []
        found.append(model.weigh_observation(row.runs[0], model.sizes.usual_noise))
    return found


SITUATIONS = (
    "samples", "sizes", "samples+sizes", "samples+run", "samples+sizes+run", "samples+estimates",
    "estimates", "plain", "run", "run+sizes",
)  # fmt: skip
"""What may be known of a launch: intervals are calibrated for each."""


def calibrate(
    rows: Sequence[EvidenceRow],
    *,
    sizes: SizeSettings | None = None,
    samplers: Sequence[int] = (),
    learners: Sequence[str] = ANSWERING,
    plain: Mapping[Kind, PlainVariance] | None = None,
) -> EvidenceModel:
    """Learn variances of pieces, a correction, and intervals around what is made of them."""
    numbers = number_groups(np.array([one.kernel for one in rows], dtype=np.object_))
    model = fit_variances(rows, numbers, sizes, plain)
    correction = fit_correction(rows, model.sizes, learners)
    held_out: dict[str, list[tuple[int, FusedEstimate]]] = {}
    draw = np.random.default_rng(0)
    for train, test in divide_groups(numbers, FOLDS):
        seen = [rows[place] for place in train]
        inner = fit_variances(seen, numbers[train], model.sizes, plain)
        if correction is not None:
            inner = replace(inner, correction=fit_correction(seen, model.sizes, learners))
        for place, others in list_others(rows, test, draw):
            for what in SITUATIONS:
                pieces = gather(inner, rows[place], others, what)
                if pieces:
                    found = (place, inner.correct(fuse(pieces), rows[place].values))
                    held_out.setdefault(name_situation(pieces), []).append(found)
    suffice = {name: found for name, found in held_out.items() if len(found) >= _LEAST_ROWS}
    intervals = {}
    for name, answers in suffice.items():
        places = [place for place, _ in answers]
        told = [one for _, one in answers]
        residuals = [rows[place].size.log_seconds - one.log_seconds for place, one in answers]
        intervals[name] = calibrate_interval(
            np.array(residuals),
            np.array([describe_difficulty(one) for one in told]),
            np.array([one.distance for one in told]),
            np.unique(numbers[places], return_inverse=True)[1].astype(np.intp),
        ).thin()
    return replace(
        model,
        correction=correction,
        intervals=intervals,
        widest={name: max(one.variance for _, one in found) for name, found in suffice.items()},
        facts={"rows": len(rows), "kernels": len(np.unique(numbers))},
        samplers=tuple(samplers),
    )


def list_others(
    rows: Sequence[EvidenceRow],
    places: npt.NDArray[np.intp],
    draw: np.random.Generator,
    count: int | None = None,
) -> Iterator[tuple[int, list[EvidenceRow]]]:
    """Return each launch with other sizes of its kernel, drawn at random."""
    by_kernel: dict[str, list[int]] = {}
    for place, one in enumerate(rows):
        by_kernel.setdefault(one.kernel, []).append(place)
    for place in places:
        others = [one for one in by_kernel[rows[place].kernel] if one != place]
        most = int(draw.integers(1, len(others) + 1)) if others and count is None else count or 0
        yield int(place), [rows[one] for one in draw.permutation(others)[:most].astype(int)]


def fit_correction(
    rows: Sequence[EvidenceRow], sizes: SizeSettings, learners: Sequence[str] = ANSWERING
) -> FittedRegression | None:
    """Learn what fused samples get wrong; None where that gains no more than by chance."""
    known = [one for one in rows if one.moments and one.values]
    families = {one.family for one in known}
    if len(families) < 10 or not learners:
        return None
    groups = number_groups(np.array([one.family for one in known], dtype=np.object_))
    kernels = np.unique([one.kernel for one in known], return_inverse=True)[1].astype(np.intp)
    said: dict[int, FusedEstimate] = {}
    for train, test in divide_groups(groups, FOLDS):
        model = fit_variances([known[place] for place in train], kernels[train], sizes)
        said |= {place: fuse(gather(model, known[place])) for place in test.tolist()}
    told = [said[place].log_seconds for place in range(len(known))]
    values = [list_answer_values(said[place], one.values) for place, one in enumerate(known)]
    names = sorted({name for one in values for name in one})
    columns = make_columns(
        {name: np.array([one.get(name, np.nan) for one in values]) for name in names}
    )
    # Of what the last digits differ by, on other processors too, an SVR makes other weights.
    targets = (np.array([one.size.log_seconds for one in known]) - np.array(told)).round(9)
    devices = np.unique([one.device for one in known], return_inverse=True)[1]
    parts = None
    if devices.max():
        # Hold each device out with a part of the families: neither has a part in what predicts it.
        parts = [
            (train[devices[train] != device], test[devices[test] == device])
            for train, test in divide_groups(groups, FOLDS)
            for device in np.unique(devices[test])
        ]
    fits = [
        fit_regression(columns, targets, groups, one, parts=parts, least_gain=2.0)[0]
        for one in learners
    ]
    best = min(fits, key=lambda one: one.inner_error)
    return best if best.share else None


def fit_variances(
    rows: Sequence[EvidenceRow],
    groups: npt.NDArray[np.intp],
    sizes: SizeSettings | None = None,
    plain: Mapping[Kind, PlainVariance] | None = None,
) -> EvidenceModel:
    if sizes is None:
        by_kernel: dict[int, list[KnownSize]] = {}
        for row, number in zip(rows, groups.tolist(), strict=True):
            by_kernel.setdefault(number, []).append(row.size)
        sizes = fit_sizes(by_kernel.values(), SizeSettings())
    told = [
        (one.log_seconds - row.size.log_seconds, one.signs, number)
        for row, number in zip(rows, groups.tolist(), strict=True)
        for one in row.moments
    ]
    model = EvidenceModel(
        forms={"": fit_samples(*map(np.array, zip(*told, strict=True)))} if told else {},
        sizes=sizes,
    )
    if plain is None:
        # Take medians: a model without samples is far off at times.
        medians = {}
        for kind in sorted({kind for row in rows for kind in row.plain}):
            off = np.array([row.plain.get(kind, np.nan) - row.size.log_seconds for row in rows])
            off = off[np.isfinite(off)]
            if len(off) >= _LEAST_ROWS:
                bias = float(np.median(off))
                # The median absolute deviation of normal noise, as a standard deviation.
                deviation = 1.4826 * float(np.median(np.abs(off - bias)))
                medians[kind] = PlainVariance(bias=bias, variance=max(deviation**2, 1e-4))
        plain = medians
    return replace(model, shared=_fit_shared(model, rows, groups), plain=plain)


def _fit_shared(
    model: EvidenceModel, rows: Sequence[EvidenceRow], groups: npt.NDArray[np.intp]
) -> SharedErrors:

    def judge(one: SampledMoment, row: EvidenceRow) -> float:
        return min(max(model.judge_samples(one, row.size.log_seconds), -_CLIP), _CLIP)

    errors = [[(one.moment, judge(one, row)) for one in row.moments] for row in rows]
    within: list[float] = []
    between: list[float] = []
    for row in errors:
        for (moment, error), (other, another) in combinations(row, 2):
            (within if moment == other else between).append(error * another)
    means: dict[int, list[float]] = {}
    for row, number in zip(errors, groups.tolist(), strict=True):
        means.setdefault(number, []).extend(error for _, error in row[:1])
    across = [
        (sum(one) ** 2 - sum(error**2 for error in one)) / (len(one) * (len(one) - 1))
        for one in means.values()
        if len(one) > 1
    ]
    every = [error**2 for row in errors for _, error in row]
    square = float(np.mean(every)) if every else 1.0
    usual = SharedErrors()
    launch = min(_share(between, square, usual.launch), _LARGEST_SHARE)
    together = _share(within, square, launch + usual.moment)
    return SharedErrors(
        launch=launch,
        moment=min(max(together - launch, _LEAST_SHARE), _LARGEST_SHARE),
        kernel=min(_share(across, square, usual.kernel), _LARGEST_SHARE),
    )


def _share(products: Sequence[float], square: float, otherwise: float) -> float:
    if len(products) < _LEAST_ROWS:
        return otherwise
    return max(float(np.mean(products)) / square, _LEAST_SHARE)
