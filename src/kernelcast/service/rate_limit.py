"""Counts wrong tokens: of each address, and of each token's id."""

import ipaddress
from collections import deque
from collections.abc import Callable
from typing import Final

from cachetools import FIFOCache

WINDOW_S: Final = 60.0
"""How long a wrong token counts, in seconds."""
_MOST: Final = 10_000
# Whoever has an IPv6 address has all of its network.
_IPV6_PREFIX: Final = 64


class AttemptCounter:
    """Counts what happened within the last minute, by any key."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._times: FIFOCache[str, deque[float]] = FIFOCache(_MOST)

    def wait_s(self, key: str) -> int | None:
        """Give the seconds after which it may happen again; None while it may."""
        times = self._times.get(key)
        if times is None:
            return None
        now_s = self._clock()
        while times and times[0] < now_s - WINDOW_S:
            times.popleft()
        if len(times) < self._most:
            return None
        return max(1, round(times[0] + WINDOW_S - now_s))

    def note(self, key: str) -> bool:
        """Count; tell whether this is the last time that it may happen for now."""
        # Later ones than allowed keep nobody out, and would take memory.
        times = self._times.get(key, deque(maxlen=self._most))
        times.append(self._clock())
        self._times[key] = times  # the newest are kept
        return len(times) == self._most


def name_address(address: str) -> str:
    """Give what an address is counted under: an IPv6 address stands for its network.

    Examples
    --------
    >>> name_address("192.0.2.1"), name_address("2001:db8::1:2:3:4")
    ('192.0.2.1', '2001:db8::/64')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    return str(ipaddress.IPv6Network((int(found), _IPV6_PREFIX), strict=False))
