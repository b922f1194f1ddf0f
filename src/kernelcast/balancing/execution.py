"""What a launch asks of devices, and how its execution went."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kernelcast.balancing.device_state import BoolArray, DeviceState
from kernelcast.balancing.messages import Collect, Prepare
from kernelcast.records.balance import Bar, SlabSpace
from kernelcast.records.errors import DeviceError, InputError, KernelcastError


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitLaunch:
    """What a launch asks of devices.

    Parameters
    ----------
    collect : callable
        Gives the command for the results of some slabs, of a device by its number.
    result_bytes : mapping of int to int
        Bytes that all devices together give back, by buffer, unless they write in place.
    """

    space: SlabSpace
    prepare: Prepare
    collect: Callable[[int, BoolArray], Collect]
    result_bytes: Mapping[int, int] = field(default_factory=dict)
    is_known_even: bool = False


@dataclass(slots=True, kw_only=True)
class Execution:
    """How a launch went; times are by the devices' clock.

    Parameters
    ----------
    estimated_end_s : float or None
        When all results would be there, said once all speeds were known.
    first_s, last_s : float
        Begin of the first sample, and when the last result was there.
    """

    states: list[DeviceState]
    bars: list[Bar] = field(default_factory=list)
    estimated_end_s: float | None = None
    first_s: float = 0.0
    last_s: float = 0.0

    def explain_end(self) -> KernelcastError:
        """Say why nobody is left."""
        return join_errors([one.error for one in self.states if one.error is not None])


def join_errors(errors: Sequence[KernelcastError]) -> KernelcastError:
    """Make one error of the devices' errors: the launch's fault if every device refuses it."""
    if len(errors) == 1 or all(isinstance(one, InputError) for one in errors):
        return errors[0]
    return DeviceError("; ".join(str(one) for one in errors))
