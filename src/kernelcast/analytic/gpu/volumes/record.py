"""What the volume model answers."""

from dataclasses import dataclass

from kernelcast.analytic.gpu.machine import Occupancy

SECTOR_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class L1Volumes:
    """What one average work-group asks of its compute unit's L1 cache: bytes per work-group."""

    warp_cycles: float
    """Cycles of the L1 cache for all accesses of one warp, the larger of data and tag stage."""
    half_warp_cycles: float
    """The paper's count of bank conflicts by half-warps, per warp (section 4.2)."""
    load_lines: float
    """Lines that the loads of a warp look up, each instruction for itself."""
    load_requests: float
    store_requests: float
    requested_bytes: float
    """Sectors that the loads of all warps ask for, unique within a warp's instruction only."""
    allocated_bytes: float
    compulsory_bytes: float
    reloads: tuple[tuple[float, float], ...]
    """Loaded again since the cache has not kept it, and what competed for the cache over its
    capacity: within an iteration of all loops, from one iteration of the innermost loop to the
    next, and so on outwards."""
    stored_bytes: float
    neighbour_bytes: float = 0.0
    """Compulsory bytes that another work-group of the same compute unit has loaded."""

    @property
    def hit_share(self) -> float:
        """Part of the sectors that warps ask for which the cache has."""
        return max(1 - self.loaded_bytes / max(self.requested_bytes, 1.0), 0.0)

    @property
    def capacity_bytes(self) -> float:
        """Loaded again since the lines were evicted."""
        return sum(bytes_ for bytes_, _ in self.reloads)

    @property
    def oversubscription(self) -> float:
        """What competes for the cache over its capacity, where that is the most."""
        return max(over for _, over in self.reloads)

    @property
    def loaded_bytes(self) -> float:
        return self.compulsory_bytes - self.neighbour_bytes + self.capacity_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Data that work-groups share with others that ran before them."""

    shared_bytes: float
    """Loads of a wave, mean, that those have loaded, and none nearer."""
    oversubscription: float
    """Bytes touched in between over the capacity of the L2 cache."""
    hit_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveVolumes:
    """What one average wave of work-groups moves between L2 cache and DRAM, in bytes."""

    work_groups: int
    waves: float
    row_load_bytes: float
    """Loads, mean of all waves, if work-groups of one row of the grid shared data and no others."""
    unique_store_bytes: float
    """Written sectors of the whole launch, per wave."""
    overlaps: tuple[Overlap, ...]
    """What work-groups share with rows and layers of work-groups before them, nearest first."""
    oversubscription: float
    skew_oversubscription: float
    """The same for one work-group per compute unit: by so much neighbours run apart."""
    capacity_load_bytes: float
    """Loaded again since it was evicted within the wave."""
    partial_store_bytes: float
    """Sectors written in parts that were evicted in between: written twice, and read once."""
    tlb_pages: float

    @property
    def reused_bytes(self) -> float:
        """Loads that find what earlier waves left."""
        return sum(one.shared_bytes * one.hit_rate for one in self.overlaps)

    @property
    def loaded_bytes(self) -> float:
        first = self.row_load_bytes - self.reused_bytes
        return first + self.capacity_load_bytes + self.partial_store_bytes

    @property
    def stored_bytes(self) -> float:
        return self.unique_store_bytes + self.partial_store_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuVolumes:
    """Bytes that a launch moves through a GPU's memory hierarchy."""

    work_groups: int
    work_group_size: int
    updates: int
    """Results of the whole launch; what volumes per update refer to."""
    occupancy: Occupancy
    l1: L1Volumes
    wave: WaveVolumes
    kept_share: float
    """Part of the launch's data that L2 still holds when the launch is repeated at once."""
    behind_share: float
    """Part of the bytes between L2 and DRAM that then come from a cache behind L2."""
    rates: str
    group_pages: float = 0.0
    """Pages of 2 MiB of a work-group's boxes, loops at one iteration."""
    notes: tuple[str, ...] = ()

    @property
    def work_items(self) -> int:
        """Work-items of the launch, the last work-group counted as full."""
        return self.work_groups * self.work_group_size

    @property
    def warps(self) -> int:
        return self.work_groups * self.occupancy.warps_per_work_group

    @property
    def pages(self) -> float:
        """Pages of 2 MiB that a work-group uses at once."""
        sectors = (self.l1.compulsory_bytes + self.l1.stored_bytes) / SECTOR_BYTES
        return min(self.group_pages, self.wave.tlb_pages, sectors)

    @property
    def l2_load_bytes(self) -> float:
        return self.l1.loaded_bytes * self.work_groups

    @property
    def l2_store_bytes(self) -> float:
        return self.l1.stored_bytes * self.work_groups

    @property
    def l2_written_bytes(self) -> float:
        """Written into L2 as its counters see it: from L1, and by DRAM to complete sectors."""
        return self.l2_store_bytes + self.wave.partial_store_bytes * self.wave.waves

    @property
    def dram_load_bytes(self) -> float:
        return self.wave.loaded_bytes * self.wave.waves

    @property
    def dram_store_bytes(self) -> float:
        return self.wave.stored_bytes * self.wave.waves

    @property
    def crossing_bytes(self) -> dict[str, float]:
        """Of the launch: ``L2_to_L1``, ``L1_to_L2``, ``DRAM_to_L2``, ``L2_to_DRAM``."""
        return {
            "L2_to_L1": self.l2_load_bytes,
            "L1_to_L2": self.l2_store_bytes,
            "DRAM_to_L2": self.dram_load_bytes,
            "L2_to_DRAM": self.dram_store_bytes,
        }

    def per_update(self) -> dict[str, float]:
        return {name: one / self.updates for name, one in self.crossing_bytes.items()}
