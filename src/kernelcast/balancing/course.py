"""What a launch asks of devices, and how it went."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kernelcast.balancing.messages import Collect
from kernelcast.balancing.players import BoolArray, Player
from kernelcast.records.balance import Bar, SlabSpace
from kernelcast.records.errors import DeviceError, InputError, KernelcastError


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOrders:
    """What a launch asks of devices.

    Parameters
    ----------
    space : SlabSpace
        The slabs.
    prepare : callable
        Has a device take kernel and buffers.
    collect : callable
        Gives the command for the results of some slabs, of a device by its number.
    result_bytes : mapping of int to int
        Bytes that all devices together give back, by buffer, unless they write in place.
    is_known_even : bool
        Whether the source proves that all work-groups do the same.
    """

    space: SlabSpace
    prepare: Callable[[int], None]
    collect: Callable[[int, BoolArray], Collect]
    result_bytes: Mapping[int, int] = field(default_factory=dict)
    is_known_even: bool = False


@dataclass(slots=True, kw_only=True)
class Course:
    """How a launch went.

    Parameters
    ----------
    players : list of Player
        The devices.
    bars : list of Bar
        Times by the crew's clock.
    estimated_end_s : float or None
        When all results would be there, by the crew's clock, said once all speeds were known.
    first_s, last_s : float
        Begin of the first sample, and when the last result was there.
    """

    players: list[Player]
    bars: list[Bar] = field(default_factory=list)
    estimated_end_s: float | None = None
    first_s: float = 0.0
    last_s: float = 0.0

    def explain_end(self) -> KernelcastError:
        """Say why nobody is left: the launch's fault if every device refuses it."""
        errors = [one.error for one in self.players if one.error is not None]
        if len(errors) == 1 or all(isinstance(one, InputError) for one in errors):
            return errors[0]
        return DeviceError("; ".join(str(one) for one in errors))
