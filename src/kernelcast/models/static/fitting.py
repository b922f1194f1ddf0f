"""Fits static models: one regression for all runtimes, which share what they can.

epsilon-SVR with a covariance of two parts: what a kind of launch brings everywhere, and what it
brings on a runtime. A runtime that few kernels were measured on leans on the others that way. Rows
of a kernel weigh alike together, however many there are. A gate holds corrections back for kinds of
work that they do not help by more than chance.

Gates and intervals are found on what the regression has seen neither the kernel nor the device of.
Runtimes that nothing was measured on keep their analytic times: what others teach does not help
them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import numpy.typing as npt

from kernelcast.models.conformal import calibrate
from kernelcast.models.grouping import divide_groups, list_names, number_groups
from kernelcast.models.learned.learner import Part
from kernelcast.models.static.describing import ESTIMATE, NAMES, classify, describe
from kernelcast.models.static.model import ANY, COVERAGE, WIDTH, StaticModel
from kernelcast.records.training_table import Numbers, Texts

Places = npt.NDArray[np.intp]
FOLDS = 5
# Chosen on half of the kernels, those of the other half left out: 0.2 errs half a point more there.
_COST = 0.5
"""Of errors beyond epsilon."""
_EPSILON = 0.05
"""Errors within it cost nothing."""
_GATES = np.linspace(0.0, 1.0, 11)
_EVERYWHERE, _ON_RUNTIME = 0.5, 0.5
_SCALE_FLOOR = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticRow:
    """A launch that was measured.

    Parameters
    ----------
    kernel : str
        ``suite/application/name``; held out together.
    features : mapping of str to float
        Of its source, counts and analytic model.
    seconds : float
        Measured.
    runtime, device : str
        Where; no runtime is called `ANY`.
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
        By runtime, and `ANY`; all share their points.

    Raises
    ------
    InputError
        If there are fewer than two kernels.
    """
    table = _Table.of(rows)
    unseen = residuals or _find_unseen(table)
    weights, intercept = table.solve(np.arange(len(rows)))
    kept = np.flatnonzero(weights)
    gates = unseen.find_gates()
    points = table.columns[kept]
    facts = {"rows": len(rows), "kernels": int(table.groups.max()) + 1}

    def make(runtime: str | None) -> StaticModel:
        return StaticModel(
            centre=table.centre,
            scale=table.scale,
            points=points,
            weights=table.share(weights, runtime)[kept],
            intercept=intercept,
            gates=gates if runtime else {},
            half_width=unseen.find_half_width(runtime),
            facts=facts,
        )

    return {ANY: make(None)} | {one: make(one) for one in list_names(table.runtimes)}


def hold_out(
    rows: Sequence[StaticRow], folds: int = FOLDS, *, by_application: bool = False
) -> list[Part]:
    """Divide rows by kernel, as a fit's own calibration does, or by application."""
    names = [one.application if by_application else one.kernel for one in rows]
    return divide_groups(_number(names), folds)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unseen:
    """What fits err by on rows whose kernel and device they have not seen.

    Parameters
    ----------
    runtimes, devices, workloads : ndarray of object (str), shape (n,)
        Of the rows.
    groups : ndarray of int, shape (n,)
        Number of each row's kernel.
    targets : ndarray, shape (n,)
        What corrections should be.
    corrections : ndarray, shape (n,)
        What they are, before the gate.
    """

    runtimes: Texts
    devices: Texts
    workloads: Texts
    groups: Places
    targets: Numbers
    corrections: Numbers

    def find_gates(self) -> dict[str, float]:
        """Give shares of corrections by kind of work, by the rule of one standard error.

        It is the least share whose errors are within a standard error of the least ones.
        """
        found = {}
        for kind in list_names(self.workloads):
            own = self.workloads == kind
            kernels = np.unique(self.groups[own], return_inverse=True)[1]
            sizes = np.bincount(kernels)
            errors = np.abs(_GATES[:, None] * self.corrections[own] - self.targets[own])
            by_kernel = np.array([np.bincount(kernels, one) for one in errors]) / sizes
            more = by_kernel - by_kernel[by_kernel.mean(axis=1).argmin()]
            is_as_good = more.mean(axis=1) <= more.std(axis=1) / sqrt(len(sizes))
            found[kind] = float(_GATES[is_as_good.argmax()])
        return found

    def find_half_width(self, runtime: str | None) -> float:
        """Give that of conformal intervals on a runtime; of analytic times where it is none."""
        rows, errors = np.arange(len(self.groups)), self.targets
        if runtime:
            gates = self.find_gates()
            rows = np.flatnonzero(self.runtimes == runtime)
            errors = errors - self.corrections * [gates[one] for one in self.workloads]
        groups = np.unique(self.groups[rows], return_inverse=True)[1]
        # Nothing that is known of a launch tells how large its error is.
        no_signs = np.empty((len(rows), 0))
        found = calibrate(errors[rows], no_signs, np.ones(len(rows)), groups)
        return found.half_width_alone((), COVERAGE)

    def without(self, device: str) -> "Unseen":
        """Leave out what was measured on a device."""
        kept = self.devices != device
        return Unseen(**{name: getattr(self, name)[kept] for name in self.__slots__})


def find_unseen(rows: Sequence[StaticRow]) -> Unseen:
    """Find what fits err by on kernels and devices that they have not seen."""
    return _find_unseen(_Table.of(rows))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Table:
    """Rows as arrays, and how alike they are."""

    centre: Numbers
    scale: Numbers
    columns: Numbers
    targets: Numbers
    groups: Places
    runtimes: Texts
    devices: Texts
    workloads: Texts
    alike: Numbers

    @classmethod
    def of(cls, rows: Sequence[StaticRow]) -> "_Table":
        """Arrange rows."""
        raw = np.array([describe(one.features) for one in rows])
        centre, scale = raw.mean(axis=0), raw.std(axis=0)
        scale = np.where(scale > _SCALE_FLOOR, scale, 1.0)
        columns = (raw - centre) / scale
        return cls(
            centre=centre, scale=scale, columns=columns,
            targets=np.array([one.target for one in rows]),
            groups=_number([one.kernel for one in rows]),
            runtimes=np.array([one.runtime for one in rows], dtype=np.object_),
            devices=np.array([one.device for one in rows], dtype=np.object_),
            workloads=np.array([str(classify(one.features)) for one in rows], dtype=np.object_),
            alike=_compare(columns),
        )  # fmt: skip

    def solve(self, train: Places) -> tuple[Numbers, float]:
        """Fit some of the rows; the others have no weight."""
        from sklearn.svm import SVR

        sizes = np.bincount(self.groups[train])
        shares = 1.0 / sizes[self.groups[train]]
        here = self.runtimes[train, None] == self.runtimes[train]
        fitted = SVR(kernel="precomputed", C=_COST, epsilon=_EPSILON).fit(
            self.alike[np.ix_(train, train)] * (_EVERYWHERE + _ON_RUNTIME * here),
            self.targets[train],
            sample_weight=shares / shares.mean(),
        )
        weights = np.zeros(len(self.targets))
        weights[train[fitted.support_]] = fitted.dual_coef_[0]
        return weights, float(fitted.intercept_[0])

    def share(self, weights: Numbers, runtime: str | None) -> Numbers:
        """Give what the rows weigh in answers for a runtime."""
        found: Numbers = weights * (_EVERYWHERE + _ON_RUNTIME * (self.runtimes == runtime))
        return found


def _compare(columns: Numbers) -> Numbers:
    squares = (columns**2).sum(axis=1)
    distances = squares[:, None] + squares - 2.0 * columns @ columns.T
    found: Numbers = np.exp(-WIDTH / len(NAMES) * np.maximum(distances, 0.0))
    return found


def _find_unseen(table: _Table) -> Unseen:
    """Correct each row by a fit that has seen neither its kernel nor its device."""
    corrections = np.zeros_like(table.targets)
    for part in divide_groups(table.groups, FOLDS):
        for device in list_names(table.devices[part.test]):
            asked = part.test[table.devices[part.test] == device]
            train = _leave_out(table, part.train, device)
            weights, intercept = table.solve(train)
            shares = table.share(weights, table.runtimes[asked[0]])
            corrections[asked] = table.alike[asked] @ shares + intercept
    return Unseen(
        runtimes=table.runtimes, devices=table.devices, workloads=table.workloads,
        groups=table.groups, targets=table.targets, corrections=corrections,
    )  # fmt: skip


def _leave_out(table: _Table, train: Places, device: str) -> Places:
    """Leave out what was measured on a device, unless it is the only one."""
    others = train[table.devices[train] != device]
    return others if len(np.unique(table.groups[others])) > 1 else train


def _number(names: Sequence[str]) -> Places:
    return number_groups(np.array(names, dtype=np.object_))
