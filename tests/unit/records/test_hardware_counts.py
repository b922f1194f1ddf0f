import math

import pytest

from kernelcast.records.errors import InputError
from kernelcast.records.hardware_counts import HardwareCount, HardwareCounts


def test_counts_tell_how_much_was_counted() -> None:
    """Gives values by name; only what ran all the time is exact."""
    counts = HardwareCounts(
        provider="perf_event",
        counts=(
            HardwareCount(name="cycles", value=400, running_share=1.0),
            HardwareCount(name="instructions", value=900, running_share=0.25),
        ),
    )
    assert counts.by_name == {"cycles": 400, "instructions": 900}
    assert [count.is_exact for count in counts.counts] == [True, False]


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5, math.nan])
def test_counters_that_never_ran_are_no_count(share: float) -> None:
    """Refuses a count of a counter that ran none of the time, or more than all of it."""
    with pytest.raises(InputError, match="running share"):
        HardwareCount(name="cycles", value=0, running_share=share)


def test_counts_are_sound() -> None:
    """Refuses negative counts and a counter that appears twice."""
    with pytest.raises(InputError, match="count is -1"):
        HardwareCount(name="cycles", value=-1, running_share=1.0)
    one = HardwareCount(name="cycles", value=1, running_share=1.0)
    with pytest.raises(InputError, match="perf_event: cycles counted twice"):
        HardwareCounts(provider="perf_event", counts=(one, one))
