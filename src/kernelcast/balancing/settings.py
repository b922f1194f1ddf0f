"""How a launch is balanced."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlace:
    """A device and where it runs."""

    device_id: str
    """Its id, or the beginning of it."""
    cores: tuple[int, ...] = ()
    """Processor cores that its process is bound to; empty: all. For CPU devices, which would
    otherwise take each other's cores."""
    concurrency: int = 1
    """Work-groups that it runs at once, about: parts of the index space are multiples of it where
    there are enough work-groups."""
    compute_units: int | None = None
    """Use a sub-device of so many compute units. What it really is, is the runtime's matter: one of
    one of two units keeps two cores busy with Intel's CPU runtime and PoCL 3.1; rusticl has none.
    `cores` limits CPU devices for sure."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the process that loads the runtime."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceSettings:
    """How a launch is balanced.

    Raises
    ------
    InputError
        If a number is out of its range.
    """

    first_share: float = 0.8
    """Share of the work that is given out by the estimates; the rest by the speeds that the first
    part shows."""
    budget: float = 0.02
    """Share of the launch that the devices together sample, more where it is short; the samples
    count as done."""
    most_slabs: int = 2048
    """Parts into which the index space is cut at most."""
    shortest_s: float = 1.5e-3
    """The least that is worth a launch of its own, in seconds."""
    assumes_independence: bool = False
    """Whether the caller vouches that no work-group reads what another one writes."""
    fixed_shares: tuple[float, ...] = ()
    """Shares of the devices, which add up to 1: nothing is sampled or corrected then. Empty: by
    speed."""
    timeout_s: float = 600.0
    """A device that shows no sign of life for so long is given up; all wait for it until it is
    prepared."""
    seed: int = 0
    """Seed of what a problem file's buffers hold."""

    def __post_init__(self) -> None:
        for name, value in (("first share", self.first_share), ("budget", self.budget)):
            if not 0 < value <= 1:
                raise InputError(f"{name} {value}: give a share above 0, at most 1")
        if self.most_slabs < 1:
            raise InputError(f"{self.most_slabs} parts of the index space: give at least 1")
        shares = self.fixed_shares
        if shares and (min(shares) < 0 or not math.isclose(sum(shares), 1.0, abs_tol=1e-9)):
            msg = f"shares {list(shares)}: give one per device, at least 0, that add up to 1"
            raise InputError(msg)
        if not self.timeout_s > 0:
            raise InputError(f"timeout {self.timeout_s} s: give a number above 0")
