"""How much of the work left a device is given next."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.balancing.settings import BalanceSettings

_LEAST_SHARE = 0.5
# Part of the work left that is given at a time while somebody samples.
_WHILE_UNKNOWN = 0.01
# Parts of a fair share that are given where speeds have been seen at work: small parts cost time,
# large ones are a risk where work differs from place to place.
_LATER_EVEN, _LATER_UNEVEN = 0.7, 0.5
# And their least part is so many times as long.
_LONGER_EVEN = 2.0
# So many times what is worth a launch are given at once, without a rest.
_LITTLE = 4.0
# Parts of fewer times the least that is worth a launch are not cut in two.
_SHORT = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpeed:
    """What is known of a device while work is given out."""

    rate: float | None
    """Work that it does per second, transfers of results included; None if nobody knows yet."""
    free_at_s: float
    """When it will have done what it has been given, about."""
    doubt: float = 1.0
    """By which factor the rate may be wrong either way, at least 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePolicy:
    """Rules for giving out work."""

    first_share: float
    """Part of its fair share that a device gets at first; the rest is divided by the speeds seen by
    then."""
    shortest_s: float
    """The least that is worth a launch, in seconds."""
    is_known_even: bool = False
    """Whether all work-groups surely do the same."""

    @classmethod
    def make(cls, settings: BalanceSettings, *, is_known_even: bool) -> "SharePolicy":
        """Make the rules that a caller's settings ask for."""
        return cls(
            first_share=settings.first_share,
            shortest_s=settings.shortest_s * (_LONGER_EVEN if is_known_even else 1.0),
            is_known_even=is_known_even,
        )

    def allot(
        self,
        speeds: Sequence[DeviceSpeed],
        device: int,
        left: float,
        now_s: float,
        *,
        is_first: bool,
    ) -> float:
        """Say how much of the work left a device gets next.

        Parameters
        ----------
        is_first : bool
            Whether this is its first part after the samples.

        Returns
        -------
        float
            Work; all that is left where that is next to nothing, 0 if the others are done with
            everything before this one could help. Of more it gets a part, however fast it seems:
            what has been given out cannot be taken back.
        """
        own = speeds[device]
        if own.rate is None:
            return left / len(speeds)
        if any(one.rate is None for one in speeds):
            # Somebody's speed is unknown: a small part, for what is given cannot be taken back.
            return own.rate * self.shortest_s + _WHILE_UNKNOWN * left
        fair = own.rate * (finish_time(speeds, left, now_s) - max(own.free_at_s, now_s))
        least = own.rate * self.shortest_s
        if fair >= left - least and left <= _LITTLE * least:
            return left
        if fair < _LEAST_SHARE * least:
            return 0.0
        if fair <= 2 * least:
            return fair
        later = _LATER_EVEN if self.is_known_even else _LATER_UNEVEN
        part = self.first_share if is_first else later
        return max(min(part * min(fair, left), _doubted_share(speeds, device, left)), least)

    def cuts(self, weight: float, rate: float | None, *, is_first: bool) -> bool:
        """Tell whether a part is run in two launches: if the first has something to show."""
        is_short = weight < _SHORT * (rate or 0.0) * self.shortest_s
        return not is_short and (is_first or not self.is_known_even)


def _doubted_share(speeds: Sequence[DeviceSpeed], device: int, left: float) -> float:
    """Give what a device can be given without harm if it is slower and all others faster."""
    own = speeds[device]
    slow = (own.rate or 0.0) / own.doubt
    fast = sum((one.rate or 0.0) * one.doubt for one in speeds) - (own.rate or 0.0) * own.doubt
    return left * slow / (slow + fast) if slow else 0.0


def finish_time(speeds: Sequence[DeviceSpeed], left: float, now_s: float) -> float:
    """Say when all would be done at the same time if the work left is divided so.

    Parameters
    ----------
    speeds : sequence of DeviceSpeed
        Devices whose rates are known, and others, which do not count.

    Returns
    -------
    float, in seconds
        When the work left is done; devices that are busy longer than that take no part in it.

    Examples
    --------
    >>> two = [DeviceSpeed(rate=2.0, free_at_s=0.0), DeviceSpeed(rate=1.0, free_at_s=3.0)]
    >>> finish_time(two, 12.0, 0.0), finish_time(two, 3.0, 0.0)
    (5.0, 1.5)
    """
    known = sorted((max(one.free_at_s, now_s), one.rate) for one in speeds if one.rate is not None)
    rate, started = 0.0, 0.0
    finish = now_s
    for place, (free_at_s, own) in enumerate(known):
        rate += own
        started += own * free_at_s
        finish = (left + started) / rate
        if place + 1 == len(known) or finish <= known[place + 1][0]:
            break
    return finish
