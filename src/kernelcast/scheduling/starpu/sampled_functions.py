"""Times of functions that are no OpenCL kernels, from samples that their program has taken.

A CPU implementation has no work-groups, but an outer loop whose passes are as independent. Its
program times a few stretches of that loop, and the line through them is the one that kernels get
(`kernelcast.models.linear`; sampling-svr, section 5.1).
"""

from collections.abc import Sequence

from kernelcast.models.linear import fit_linear, make_interval
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.estimates import Interval
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.samples import SampleRun, TimedLaunch

_COVERAGE = 0.9


def extrapolate(samples: Sequence[tuple[int, int, float]], *, units: int) -> Interval:
    """Predict the time of a whole loop from stretches of it.

    Parameters
    ----------
    samples : sequence of (int, int, float)
        Of each stretch: its first pass, its number of passes, its time in seconds.
    units : int
        Passes of the whole loop.

    Examples
    --------
    >>> stretches = [(0, 10, 0.010), (100, 10, 0.010), (200, 20, 0.020), (300, 20, 0.020)]
    >>> round(extrapolate(stretches, units=1000).seconds, 6)
    1.0
    """
    if not samples or units < 1:
        msg = f"{len(samples)} samples of {units} passes: expected at least one of each"
        raise InputError(msg)
    for first, count, _ in samples:
        if first < 0 or count < 1 or first + count > units:
            msg = f"sample of passes {first} to {first + count}: the loop has {units}"
            raise InputError(msg)
    try:
        run = SampleRun(
            kernel_digest="",
            device_id="cpu",
            ndrange=NDRange(global_size=(units,), local_size=(1,)),
            launches=tuple(
                TimedLaunch(
                    box=GroupBox(start=(first,), shape=(count,)),
                    window=number,
                    duration_s=seconds,
                )
                for number, (first, count, seconds) in enumerate(samples)
            ),
            launch_overhead_s=0.0,
            is_even=True,
        )
    except KernelcastError as error:
        msg = f"samples of a loop: {error}"
        raise InputError(msg) from error
    return make_interval(fit_linear(run), coverage=_COVERAGE)
