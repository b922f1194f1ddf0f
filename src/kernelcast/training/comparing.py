"""Two models compared on groups that neither has seen, and why a learned one errs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from kernelcast.models.attribution import attribute
from kernelcast.models.catalogue import make_model
from kernelcast.models.correction import CorrectionModel
from kernelcast.models.validation.bootstrap import Bootstrap
from kernelcast.models.validation.comparison import (
    Comparison,
    DeviceComparison,
    ExplainedError,
    compare_validated,
)
from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Texts, TrainingTable
from kernelcast.training.rows import choose_rows
from kernelcast.training.settings import RowFilter, Split, ValidationSettings
from kernelcast.training.validating import label_rows, validate_models

Report = Callable[[str, int, int], None]
"""Is called with what is at work, its parts done and all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlan:
    """How to compare."""

    split: Split = Split.KERNEL
    """What is held out as a whole: kernels or applications."""
    rows: RowFilter = field(default_factory=RowFilter)
    """Launches that are learned from and judged."""
    jobs: int = -1
    """Processes; -1 takes one per processor."""
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    """How the interval of the difference is found."""
    explained: int = 3
    """Kernels per device on which the errors of a learned model are explained."""

    def __post_init__(self) -> None:
        if self.split is Split.DEVICE:
            msg = "comparison: devices are few, nothing could be told of others; split by kernel"
            raise InputError(msg)


def compare_models(
    table: TrainingTable,
    first: str,
    second: str,
    plan: ComparisonPlan | None = None,
    report: Report = lambda _, __, ___: None,
) -> Comparison:
    """Validate two models on the same rows, leaving groups out, and compare them.

    Parameters
    ----------
    table : TrainingTable
        Observations.
    first, second : str
        Models of `kernelcast.models.catalogue`.
    plan : ComparisonPlan, optional
        How.
    report : callable, optional
        Is told where it stands.

    Returns
    -------
    Comparison
        With explanations of the kernels on which the second model errs most, where it is a
        learned one, else the first: each told by a fit that has not seen the kernel's group.
    """
    plan = plan or ComparisonPlan()
    if first == second:
        msg = f"{first} cannot be compared with itself; name two different models"
        raise InputError(msg)
    settings = ValidationSettings(
        split=plan.split, models=(first, second), rows=plan.rows, jobs=plan.jobs
    )
    validation = validate_models(table, settings, lambda done, total: report("fits", done, total))
    comparison = compare_validated(
        validation,
        first,
        second,
        noise=dict(zip(table.keys.tolist(), table.noise.tolist(), strict=True)),
        resamples=plan.bootstrap.resamples,
        confidence=plan.bootstrap.confidence,
        seed=plan.bootstrap.seed,
    )
    learned = _choose_learned(first, second)
    if learned is None:
        return comparison
    judged = choose_rows(table, plan.rows)
    labels = label_rows(judged, plan.split)
    worst = list(_list_worst(comparison, learned.name, plan.explained))
    explained = []
    for done, one in enumerate(worst, start=1):
        explained.append(_explain(judged, labels, learned, one))
        report("explaining errors", done, len(worst))
    return replace(comparison, explained=tuple(explained))


def _choose_learned(first: str, second: str) -> CorrectionModel | None:
    models = (make_model(second), make_model(first))
    return next((one for one in models if isinstance(one, CorrectionModel)), None)


def _list_worst(comparison: Comparison, model: str, count: int) -> Iterator[tuple[str, str, float]]:
    """Give device, kernel and error where a model errs most, device by device."""
    for device in comparison.devices:
        yield from _list_worst_on(device, count, is_second=model == comparison.second)


def _list_worst_on(
    device: DeviceComparison, count: int, *, is_second: bool
) -> Iterator[tuple[str, str, float]]:
    errors = [
        (one.second_error if is_second else one.first_error, one.kernel) for one in device.kernels
    ]
    for error, kernel in sorted(errors, reverse=True)[:count]:
        yield device.device, kernel, error


def _explain(
    table: TrainingTable, labels: Texts, model: CorrectionModel, worst: tuple[str, str, float]
) -> ExplainedError:
    """Fit without the kernel's group, as the validation did, and take its corrections apart."""
    device, kernel, error = worst
    on_device = table.devices == device
    of_kernel = on_device & (table.kernels == kernel)
    held = np.isin(labels.astype(str), sorted(set(labels[of_kernel].tolist())))
    seen = on_device & ~held
    fitted = model.fit(table.take(seen), labels[seen])
    rows = table.take(of_kernel)
    reference_s = fitted.reference.seconds(rows)
    known = np.isfinite(reference_s)
    rows, reference_s = rows.take(known), reference_s[known]
    return ExplainedError(
        device=device,
        kernel=kernel,
        error=error,
        reference_error=float((np.abs(reference_s - rows.seconds) / rows.seconds).mean()),
        needed=float((rows.seconds / reference_s).mean()) - 1,
        attribution=attribute(fitted, rows),
    )
