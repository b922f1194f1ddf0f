"""What a clean L2 cache still takes before it must write back, and what that does to a sample.

An L2 cache that writes back keeps what is stored until room is needed. The first work-groups of a
launch find room; all others pay for DRAM writes of those before them. So a sample of few
work-groups is too fast where DRAM bandwidth is the limit, and the more stores a kernel does.
"""

from dataclasses import dataclass

from kernelcast.analytic.gpu.machine import DramRoof


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBack:
    """Volumes between L2 cache and DRAM as a launch of even work-groups goes on.

    Examples
    --------
    >>> copy = WriteBack(l2_bytes=600, loaded_bytes=10, stored_bytes=10, allocated_bytes=20)
    >>> copy.clean_work_groups
    30.0
    >>> copy.count_written_bytes(20), copy.count_written_bytes(100)
    (0.0, 700.0)
    """

    l2_bytes: float
    """Capacity of the cache."""
    loaded_bytes: float
    stored_bytes: float
    """What a work-group loads from DRAM, and what of its stores DRAM gets in the end."""
    allocated_bytes: float
    """What a work-group newly occupies in the cache: loads, and stores to other places."""
    is_clean: bool = True
    """Whether the cache holds nothing at the beginning that has to be written back."""

    @property
    def clean_work_groups(self) -> float:
        """Work-groups that fill the cache; from then on each evicts what another one stored."""
        if not self.is_clean or not self.allocated_bytes > 0:
            return 0.0
        return self.l2_bytes / self.allocated_bytes

    def count_written_bytes(self, work_groups: float) -> float:
        """Give what is written back while so many work-groups run from the beginning."""
        return self.stored_bytes * max(0.0, work_groups - self.clean_work_groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeCorrection:
    """The time of a whole launch with what its samples did not have to write back."""

    seconds: float
    """Of the whole launch."""
    rate_s: float
    """Per work-group beyond the samples."""
    dram_s: float
    """Least time per work-group for the DRAM volumes there."""
    loaded_bytes: float
    written_bytes: float
    """These volumes, per work-group."""


def correct_by_volumes(
    sample_s: float,
    rate_s: float,
    *,
    sampled: float,
    total: float,
    volumes: WriteBack,
    roof: DramRoof,
) -> VolumeCorrection:
    """Extrapolate a sample by its rate, but no faster than DRAM takes what is written back.

    Parameters
    ----------
    sample_s : float
        Time of the longest sample, in seconds.
    rate_s : float
        Slope of the samples, in seconds per work-group.
    sampled, total : float
        Work-groups of the longest sample and of the whole launch.

    Examples
    --------
    >>> copy = WriteBack(l2_bytes=600, loaded_bytes=10, stored_bytes=10, allocated_bytes=20)
    >>> roof = DramRoof(load_bytes_per_s=100, copy_bytes_per_s=100)
    >>> correct_by_volumes(
    ...     3.0, 0.1, sampled=30, total=100, volumes=copy, roof=roof
    ... ).seconds
    17.0
    """
    left = total - sampled
    late = volumes.count_written_bytes(total) - volumes.count_written_bytes(sampled)
    written = late / left if left > 0 else 0.0
    least_s = roof.least_s(volumes.loaded_bytes, written)
    chosen_s = max(rate_s, least_s) if volumes.stored_bytes > 0 else rate_s
    return VolumeCorrection(
        seconds=sample_s + chosen_s * left,
        rate_s=chosen_s,
        dram_s=least_s,
        loaded_bytes=volumes.loaded_bytes,
        written_bytes=written,
    )
