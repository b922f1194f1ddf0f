"""Fits static models: one regression for all runtimes and devices, which share what they can.

epsilon-SVR with a covariance of three parts: what a kind of launch brings everywhere, what it
brings on a runtime, and what on a device. A runtime that few kernels were measured on leans on the
others that way, and what is particular to a device does not pass for the runtime's. Rows of a
kernel weigh alike together, however many there are. A gate holds corrections back for kinds of work
that they do not help: stencils, say, whose analytic times err in no way that columns tell.

Intervals are conformal on what the regression has not seen: kernels, and with them the device of
a model for a runtime, or the whole runtime of the model for others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
import numpy.typing as npt

from kernelcast.models.conformal import Calibration, calibrate
from kernelcast.models.grouping import divide_groups, list_names, number_groups
from kernelcast.models.learned.learner import Part
from kernelcast.models.static.describing import ESTIMATE, NAMES, classify, describe
from kernelcast.models.static.model import ANY, EPSILON, WIDTH, StaticModel, scale_columns
from kernelcast.records.training_table import Numbers, Texts

Places = npt.NDArray[np.intp]
FOLDS = 5
_COSTS = (0.2, 2.0)
"""Of errors beyond epsilon; the one is taken that errs least on kernels and devices it has not
seen: the less certain the rows, the more a correction must be held back."""
_GATES = np.linspace(0.0, 1.0, 11)
_EVERYWHERE, _ON_RUNTIME, _ON_DEVICE = 0.4, 0.4, 0.2
_LEVEL = 0.2
"""Of a runtime and of a device, whatever the launch."""
_SCALE_FLOOR = 1e-6
_MOST_SCORES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticRow:
    """A launch that was measured.

    Parameters
    ----------
    kernel : str
        ``suite/application/name``; held out together.
    features : mapping of str to float
        Of its source, compiler, counts and analytic model.
    seconds : float
        Measured.
    runtime, device : str
        Where; none is called `ANY`, and no runtime as a device.
    """

    kernel: str
    features: Mapping[str, float]
    seconds: float
    runtime: str
    device: str

    @property
    def application(self) -> str:
        """Suite and application, whose kernels resemble each other."""
        return self.kernel.rpartition("/")[0]

    @property
    def target(self) -> float:
        """Natural logarithm of the measured time over the analytic one."""
        return log(self.seconds / self.features[ESTIMATE])


def fit_static(
    rows: Sequence[StaticRow], residuals: "Unseen | None" = None
) -> dict[str, StaticModel]:
    """Learn from measured launches.

    Parameters
    ----------
    rows : sequence of StaticRow
        Of all devices.
    residuals : Unseen, optional
        What such fits err by, where that is known already; found by fits to parts of the rows when
        left out.

    Returns
    -------
    dict of str to StaticModel
        By device, by runtime, and `ANY`; all share their points.

    Raises
    ------
    InputError
        If there are fewer than two kernels.
    """
    table = _Table.of(rows)
    unseen = residuals or _find_unseen(table)
    weights, intercept = table.solve(np.arange(len(rows)), unseen.cost)
    kept = np.flatnonzero(weights)
    points = table.columns[kept]
    found = {}
    for name, (runtime, device) in _list_places(rows).items():
        shares, level = table.share(weights, runtime, device)
        found[name] = StaticModel(
            centre=table.centre,
            scale=table.scale,
            points=points,
            weights=shares[kept],
            intercept=intercept + level,
            gates=unseen.find_gates(runtime, device),
            calibration=unseen.calibrate(runtime, device),
            facts={"rows": len(rows), "kernels": int(table.groups.max()) + 1},
        )
    return found


def _list_places(rows: Sequence[StaticRow]) -> dict[str, tuple[str | None, str | None]]:
    """Give runtime and device by the name of the model that serves them."""
    found: dict[str, tuple[str | None, str | None]] = {ANY: (None, None)}
    found |= {one.runtime: (one.runtime, None) for one in rows}
    return found | {one.device: (one.runtime, one.device) for one in rows}


def hold_out(
    rows: Sequence[StaticRow], folds: int = FOLDS, *, by_application: bool = False
) -> list[Part]:
    """Divide rows by kernel, as a fit's own calibration does, or by application."""
    names = [one.application if by_application else one.kernel for one in rows]
    return divide_groups(_number(names), folds)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unseen:
    """What fits err by on rows whose kernel they have not seen.

    Parameters
    ----------
    runtimes, devices, workloads : ndarray of object (str), shape (n,)
        Of the rows.
    groups : ndarray of int, shape (n,)
        Number of each row's kernel.
    targets : ndarray, shape (n,)
        What corrections should be.
    known, device_out, runtime_out : ndarray, shape (n,)
        Corrections, before the gate, by fits that know the row's device from other kernels, its
        runtime alone, or neither.
    cost : float
        Of errors, by which `device_out` errs least.
    """

    runtimes: Texts
    devices: Texts
    workloads: Texts
    groups: Places
    targets: Numbers
    known: Numbers
    device_out: Numbers
    runtime_out: Numbers
    cost: float

    def find_gates(self, runtime: str | None, device: str | None) -> dict[str, float]:
        """Give the share of corrections that errs least on what is unseen, by kind of work."""
        corrections = self._choose(runtime, device)
        weights = 1.0 / np.bincount(self.groups)[self.groups]
        found = {}
        for kind in list_names(self.workloads):
            own = self.workloads == kind
            tried = _GATES[:, None] * corrections[own]
            errors = np.abs(tried - self.targets[own]) @ weights[own]
            found[kind] = float(_GATES[errors.argmin()])
        return found

    def calibrate(self, runtime: str | None, device: str | None) -> Calibration:
        """Calibrate intervals of a device that was measured, of another one, or of any."""
        corrections, gates = self._choose(runtime, device), self.find_gates(runtime, device)
        is_here = self.runtimes == runtime
        rows = np.arange(len(self.groups)) if runtime is None else np.flatnonzero(is_here)
        gated = corrections[rows] * np.array([gates[one] for one in self.workloads[rows]])
        signs = np.log(np.abs(gated) + EPSILON)[:, None]
        errors = self.targets[rows] - gated
        groups = np.unique(self.groups[rows], return_inverse=True)[1]
        return _thin(calibrate(errors, signs, np.ones(len(rows)), groups))

    def _choose(self, runtime: str | None, device: str | None) -> Numbers:
        if runtime is None:
            return self.runtime_out
        return self.device_out if device is None else self.known

    def without(self, device: str) -> "Unseen":
        """Leave out what was measured on a device."""
        kept = self.devices != device
        arrays = {name: getattr(self, name)[kept] for name in self.__slots__ if name != "cost"}
        return Unseen(**arrays, cost=self.cost)


def find_unseen(rows: Sequence[StaticRow]) -> Unseen:
    """Find what fits err by on kernels, devices and runtimes that they have not seen."""
    return _find_unseen(_Table.of(rows))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Table:
    """Rows as arrays, and their covariance."""

    centre: Numbers
    scale: Numbers
    columns: Numbers
    targets: Numbers
    groups: Places
    runtimes: Texts
    devices: Texts
    workloads: Texts
    alike: Numbers
    covariance: Numbers

    @classmethod
    def of(cls, rows: Sequence[StaticRow]) -> "_Table":
        """Arrange rows."""
        raw = np.array([describe(one.features) for one in rows])
        known = np.isfinite(raw)
        counts = np.maximum(known.sum(axis=0), 1)
        centre = np.where(known, raw, 0.0).sum(axis=0) / counts
        scale = np.sqrt((np.where(known, raw - centre, 0.0) ** 2).sum(axis=0) / counts)
        scale = np.where(scale > _SCALE_FLOOR, scale, 1.0)
        columns = scale_columns(raw, centre, scale)
        alike = _compare(columns)
        runtimes = np.array([one.runtime for one in rows], dtype=np.object_)
        devices = np.array([one.device for one in rows], dtype=np.object_)
        workloads = np.array([str(classify(one.features)) for one in rows], dtype=np.object_)
        return cls(
            centre=centre, scale=scale, columns=columns,
            groups=_number([one.kernel for one in rows]),
            targets=np.array([one.target for one in rows]), runtimes=runtimes, devices=devices,
            workloads=workloads,
            alike=alike, covariance=_relate(alike, runtimes, devices),
        )  # fmt: skip

    def solve(self, train: Places, cost: float) -> tuple[Numbers, float]:
        """Fit some of the rows; the others have no weight."""
        from sklearn.svm import SVR

        sizes = np.bincount(self.groups[train])
        shares = 1.0 / sizes[self.groups[train]]
        fitted = SVR(kernel="precomputed", C=cost, epsilon=EPSILON).fit(
            self.covariance[np.ix_(train, train)],
            self.targets[train],
            sample_weight=shares / shares.mean(),
        )
        weights = np.zeros(len(self.targets))
        weights[train[fitted.support_]] = fitted.dual_coef_[0]
        return weights, float(fitted.intercept_[0])

    def leave_out(self, train: Places, labels: Texts, label: str) -> Places:
        """Leave out what was measured in a place, unless it is the only one."""
        others = train[labels[train] != label]
        return others if len(np.unique(self.groups[others])) > 1 else train

    def correct(
        self,
        fit: tuple[Numbers, float],
        test: Places,
        runtime: str | None = None,
        device: str | None = None,
    ) -> Numbers:
        """Give the corrections of some rows by a fit to others, as `fit_static` shares it."""
        weights, intercept = fit
        shares, level = self.share(weights, runtime, device)
        found: Numbers = self.alike[test] @ shares + intercept + level
        return found

    def share(
        self, weights: Numbers, runtime: str | None, device: str | None
    ) -> tuple[Numbers, float]:
        """Give what the rows weigh in answers for a device, and their level there."""
        here, same = self.runtimes == runtime, self.devices == device
        shares: Numbers = weights * (_EVERYWHERE + _ON_RUNTIME * here + _ON_DEVICE * same)
        return shares, _LEVEL * float(weights[here].sum() + weights[same].sum())


def _compare(columns: Numbers) -> Numbers:
    squares = (columns**2).sum(axis=1)
    distances = squares[:, None] + squares - 2.0 * columns @ columns.T
    found: Numbers = np.exp(-WIDTH / len(NAMES) * np.maximum(distances, 0.0))
    return found


def _relate(alike: Numbers, runtimes: Texts, devices: Texts) -> Numbers:
    here = runtimes[:, None] == runtimes
    same = devices[:, None] == devices
    found: Numbers = _EVERYWHERE * alike
    found += here * (_ON_RUNTIME * alike + _LEVEL)
    found += same * (_ON_DEVICE * alike + _LEVEL)
    return found


def _find_unseen(table: _Table) -> Unseen:
    parts = divide_groups(table.groups, FOLDS)
    tried = {cost: _correct_elsewhere(table, parts, cost) for cost in _COSTS}
    cost = min(_COSTS, key=lambda one: float(np.abs(table.targets - tried[one]).mean()))
    known, runtime_out = np.zeros_like(table.targets), np.zeros_like(table.targets)
    for part in parts:
        fit = table.solve(part.train, cost)
        for device, asked in _divide(part.test, table.devices):
            known[asked] = table.correct(fit, asked, table.runtimes[asked[0]], device)
        for runtime, asked in _divide(part.test, table.runtimes):
            fit = table.solve(table.leave_out(part.train, table.runtimes, runtime), cost)
            runtime_out[asked] = table.correct(fit, asked)
    return Unseen(
        runtimes=table.runtimes, devices=table.devices, workloads=table.workloads,
        groups=table.groups, cost=cost,
        targets=table.targets, known=known, device_out=tried[cost], runtime_out=runtime_out,
    )  # fmt: skip


def _correct_elsewhere(table: _Table, parts: Sequence[Part], cost: float) -> Numbers:
    """Correct each row by a fit that has seen neither its kernel nor its device."""
    found = np.zeros_like(table.targets)
    for part in parts:
        for device, asked in _divide(part.test, table.devices):
            fit = table.solve(table.leave_out(part.train, table.devices, device), cost)
            found[asked] = table.correct(fit, asked, table.runtimes[asked[0]])
    return found


def _divide(places: Places, labels: Texts) -> list[tuple[str, Places]]:
    return [(one, places[labels[places] == one]) for one in list_names(labels[places])]


def _number(names: Sequence[str]) -> npt.NDArray[np.intp]:
    return number_groups(np.array(names, dtype=np.object_))


def _thin(calibration: Calibration) -> Calibration:
    """Keep quantiles of the scores."""
    if len(calibration.scores) <= _MOST_SCORES:
        return calibration
    shares = np.linspace(0.0, calibration.shares[-1], _MOST_SCORES)
    kept = np.unique(np.searchsorted(calibration.shares, shares))
    kept = np.minimum(kept, len(calibration.scores) - 1)
    return replace(calibration, scores=calibration.scores[kept], shares=calibration.shares[kept])
