"""How well the linear model does from one choice of sampling points."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingPointScore:
    """The linear model's errors on one device, from one choice of samples (the paper's Fig. 15).

    Errors are |predicted - measured| / measured, as shares.
    """

    device: str
    """Id of the device."""
    label: str
    """The two points in multiples of the work-groups that a device runs at once (``"1, 2"`` to
    ``"5, 6"``), or ``"default"`` for the samples that an estimate takes unless told otherwise."""
    multiple: int
    """The first point's multiple; 0 for the default samples."""
    rows: int
    """Number of predictions: launches, times the sets of windows that each was sampled with."""
    mean: float
    median: float
    p90: float
    """Arithmetic mean and quantiles of the errors."""
    cost: float
    """Median of the samples' device time over the whole launch's."""
