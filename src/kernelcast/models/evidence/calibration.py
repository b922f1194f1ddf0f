"""Learns variances and intervals from launches whose time was measured."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kernelcast.models.conformal import Calibration
from kernelcast.models.conformal import calibrate as calibrate_interval
from kernelcast.models.evidence.fusion import fuse
from kernelcast.models.evidence.model import (
    ANY_FORM,
    EvidenceModel,
    PlainVariance,
    SharedErrors,
    describe_difficulty,
    name_situation,
)
from kernelcast.models.evidence.moments import FormVariance, SampledMoment, fit_form
from kernelcast.models.evidence.piece import FusedEstimate, Kind, Piece
from kernelcast.models.evidence.size_fit import fit_sizes
from kernelcast.models.evidence.sizes import KnownSize, SizeSettings
from kernelcast.models.grouping import divide_groups, number_groups

FOLDS = 5
"""Parts of the kernels; each part's intervals rest on variances of the others."""
_CLIP = 3.0
# Two of these leave a piece an error of its own.
_LARGEST_SHARE = 0.4
_LEAST_SHARE = 0.01
_LEAST_ROWS = 30
_MAD = 1.4826
_LEAST_VARIANCE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """A launch that was measured, and all that was known of it."""

    kernel: str
    """Kernel on its device: launches of one are sizes of each other, and are held out together."""
    size: KnownSize
    """Its measured time, work and time stamp."""
    moments: tuple[SampledMoment, ...] = ()
    """Its samples."""
    plain: Mapping[Kind, float]
    """Natural logarithms of seconds by the learned and the analytic model."""
    runs: tuple[float, ...] = ()
    """Natural logarithms of its whole runs' seconds."""


Gather = Callable[[EvidenceModel, EvidenceRow, Sequence[EvidenceRow]], list[Piece]]
"""Makes pieces of a launch and of other launches of its kernel, as an estimate would have them."""


def gather_samples(
    model: EvidenceModel, row: EvidenceRow, others: Sequence[EvidenceRow]
) -> list[Piece]:
    """Make pieces of samples, and of the models' times: nothing was observed."""
    del others
    found = [model.weigh_samples(one) for one in row.moments]
    return [*found, *gather_plain(model, row, ())]


def gather_sizes(
    model: EvidenceModel, row: EvidenceRow, others: Sequence[EvidenceRow]
) -> list[Piece]:
    """Make pieces of what is known without running anything: other sizes were observed.

    The models' times only stand in for sizes: beside them they cost accuracy (7.9 instead of
    7.1 % in the mean, of three sizes on PoCL a2d1).
    """
    if not others:
        return gather_plain(model, row, ())
    table = model.tabulate([one.size for one in others])
    answer = table.predict(row.size.log_work, row.size.at_s, row.size.working_set_bytes)
    return [model.weigh_sizes(answer)]


def gather_all(
    model: EvidenceModel, row: EvidenceRow, others: Sequence[EvidenceRow]
) -> list[Piece]:
    """Make pieces of samples and of other sizes, which also tell how the sampler errs."""
    past = [
        model.judge_samples(one, other.size.log_seconds)
        for other in others
        for one in other.moments
    ]
    found = [model.weigh_samples(one, past) for one in row.moments]
    found += gather_plain(model, row, ())
    return [*found, *gather_sizes(model, row, others)] if others else found


def gather_observed(
    model: EvidenceModel, row: EvidenceRow, others: Sequence[EvidenceRow]
) -> list[Piece]:
    """Make pieces of samples and of one whole run of the launch."""
    del others
    return [*gather_samples(model, row, ()), *_gather_run(model, row)]


def gather_run(
    model: EvidenceModel, row: EvidenceRow, others: Sequence[EvidenceRow]
) -> list[Piece]:
    """Make a piece of one whole run of the launch: it is not sampled any more."""
    del others
    return _gather_run(model, row)


def gather_run_and_sizes(
    model: EvidenceModel, row: EvidenceRow, others: Sequence[EvidenceRow]
) -> list[Piece]:
    """Make pieces of one whole run of the launch and of other sizes."""
    run = _gather_run(model, row)
    return [*run, *gather_sizes(model, row, others)] if run and others else run


def _gather_run(model: EvidenceModel, row: EvidenceRow) -> list[Piece]:
    usual = model.sizes.usual_noise
    return [model.weigh_observation(one, usual) for one in row.runs[:1]]


def gather_everything(
    model: EvidenceModel, row: EvidenceRow, others: Sequence[EvidenceRow]
) -> list[Piece]:
    """Make pieces of samples, other sizes and one whole run of the launch."""
    return [*gather_all(model, row, others), *_gather_run(model, row)]


def gather_estimates(
    model: EvidenceModel, row: EvidenceRow, others: Sequence[EvidenceRow]
) -> list[Piece]:
    """Make pieces of samples, and of other sizes that were estimated by theirs."""
    return [*gather_samples(model, row, ()), *gather_estimates_alone(model, row, others)]


def gather_estimates_alone(
    model: EvidenceModel, row: EvidenceRow, others: Sequence[EvidenceRow]
) -> list[Piece]:
    """Make a piece of other sizes that were estimated: this one was not sampled."""
    known = [
        model.know_estimate(one.size, fuse(gather_samples(model, one, ())))
        for one in others
        if one.moments
    ]
    if not known:
        return []
    answer = model.tabulate(known).predict(row.size.log_work, row.size.at_s)
    return [model.weigh_estimates(answer)]


def gather_plain(
    model: EvidenceModel, row: EvidenceRow, others: Sequence[EvidenceRow]
) -> list[Piece]:
    """Make pieces of the models' times alone: nothing is known of the kernel but its source."""
    del others
    found = [model.weigh_plain(kind, told) for kind, told in row.plain.items()]
    return [one for one in found if one is not None]


SITUATIONS: tuple[Gather, ...] = (
    gather_samples, gather_sizes, gather_all, gather_observed, gather_everything,
    gather_estimates, gather_estimates_alone, gather_plain, gather_run, gather_run_and_sizes,
)  # fmt: skip


def calibrate(
    rows: Sequence[EvidenceRow],
    *,
    sizes: SizeSettings | None = None,
    samplers: Sequence[int] = (),
    seed: int = 0,
) -> EvidenceModel:
    """Learn variances of pieces, and intervals around what is made of them.

    Parameters
    ----------
    rows : sequence of EvidenceRow
        Undisturbed launches of at least two kernels, of one device or of several alike.
    sizes : SizeSettings, optional
        Taken instead of being learned.
    samplers : sequence of int
        Revisions of the samplers that the samples are of.
    seed : int
        Of the choice of other sizes that intervals are calibrated with: one to all of them.

    Raises
    ------
    InputError
        If there are too few launches or kernels.
    """
    numbers = number_groups(np.array([one.kernel for one in rows], dtype=np.object_))
    model = fit_variances(rows, numbers, sizes)
    held_out: dict[str, list[tuple[int, FusedEstimate]]] = {}
    draw = np.random.default_rng(seed)
    for part in divide_groups(numbers, FOLDS):
        seen = [rows[place] for place in part.train]
        inner = fit_variances(seen, numbers[part.train], model.sizes)
        for place, others in list_others(rows, part.test, draw):
            for gather in SITUATIONS:
                pieces = gather(inner, rows[place], others)
                if pieces:
                    found = (place, fuse(pieces))
                    held_out.setdefault(name_situation(pieces), []).append(found)
    suffice = {name: found for name, found in held_out.items() if len(found) >= _LEAST_ROWS}
    return replace(
        model,
        intervals={
            name: _calibrate_intervals(rows, numbers, found) for name, found in suffice.items()
        },
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
    """Give each launch with other sizes of its kernel, drawn at random.

    Parameters
    ----------
    rows : sequence of EvidenceRow
        All launches.
    places : ndarray of int
        Launches asked for.
    draw : Generator
        Chooses them.
    count : int, optional
        How many others each has, where there are as many; one to all unless given.
    """
    by_kernel: dict[str, list[int]] = {}
    for place, one in enumerate(rows):
        by_kernel.setdefault(one.kernel, []).append(place)
    for place in places:
        others = [one for one in by_kernel[rows[place].kernel] if one != place]
        most = int(draw.integers(1, len(others) + 1)) if others and count is None else count or 0
        yield int(place), [rows[one] for one in draw.permutation(others)[:most].astype(int)]


def fit_variances(
    rows: Sequence[EvidenceRow], groups: npt.NDArray[np.intp], sizes: SizeSettings | None = None
) -> EvidenceModel:
    """Learn all but intervals.

    Parameters
    ----------
    rows : sequence of EvidenceRow
        Launches.
    groups : ndarray of int, shape (n,)
        Number of each one's kernel.
    sizes : SizeSettings, optional
        Taken instead of being learned.
    """
    if sizes is None:
        by_kernel: dict[int, list[KnownSize]] = {}
        for row, number in zip(rows, groups.tolist(), strict=True):
            by_kernel.setdefault(number, []).append(row.size)
        sizes = fit_sizes(by_kernel.values(), SizeSettings())
    model = EvidenceModel(forms=_fit_forms(rows, groups), sizes=sizes)
    return replace(model, shared=_fit_shared(model, rows, groups), plain=_fit_plain(rows))


def _fit_forms(
    rows: Sequence[EvidenceRow], groups: npt.NDArray[np.intp]
) -> dict[str, FormVariance]:
    """Fit each form that there are enough launches of, and all together for the others."""
    names, residuals, signs, numbers = [], [], [], []
    for row, number in zip(rows, groups.tolist(), strict=True):
        for one in row.moments:
            names.append(one.form)
            residuals.append(one.log_seconds - row.size.log_seconds)
            signs.append(one.signs)
            numbers.append(number)
    found = {}
    for name in (ANY_FORM, *sorted(set(names))) if names else ():
        of_form = np.array([name in {ANY_FORM, one} for one in names])
        if name == ANY_FORM or of_form.sum() >= _LEAST_ROWS:
            found[name] = fit_form(
                np.array(residuals)[of_form], np.array(signs)[of_form], np.array(numbers)[of_form]
            )
    return found


def _fit_plain(rows: Sequence[EvidenceRow]) -> dict[Kind, PlainVariance]:
    """Take medians: a model without samples is far off at times."""
    found = {}
    for kind in sorted({kind for row in rows for kind in row.plain}):
        told = np.array([row.plain.get(kind, np.nan) - row.size.log_seconds for row in rows])
        told = told[np.isfinite(told)]
        if len(told) >= _LEAST_ROWS:
            bias = float(np.median(told))
            deviation = _MAD * float(np.median(np.abs(told - bias)))
            found[kind] = PlainVariance(bias=bias, variance=max(deviation**2, _LEAST_VARIANCE))
    return found


def _fit_shared(
    model: EvidenceModel, rows: Sequence[EvidenceRow], groups: npt.NDArray[np.intp]
) -> SharedErrors:
    """Correlate errors of moments: within a moment, a launch and a kernel."""
    errors = [
        [(one.moment, _clip(model.judge_samples(one, row.size.log_seconds)))
         for one in row.moments]
        for row in rows
    ]  # fmt: skip
    within: list[float] = []
    between: list[float] = []
    for row in errors:
        for place, (moment, error) in enumerate(row):
            for other, another in row[:place]:
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


def _clip(value: float) -> float:
    return min(max(value, -_CLIP), _CLIP)


def _calibrate_intervals(
    rows: Sequence[EvidenceRow],
    groups: npt.NDArray[np.intp],
    found: Sequence[tuple[int, FusedEstimate]],
) -> Calibration:
    residuals = np.array([rows[place].size.log_seconds - one.log_seconds for place, one in found])
    signs = np.array([describe_difficulty(one.variance, one.disagreement) for _, one in found])
    numbers = np.unique(groups[[place for place, _ in found]], return_inverse=True)[1]
    none = np.zeros(len(found))
    return calibrate_interval(residuals, signs, none, numbers.astype(np.intp)).thin()
