"""Data volumes of a launch between registers, L1, L2 and DRAM of a GPU."""

from kernelcast.analytic.gpu.volumes.compute import compute_volumes
from kernelcast.analytic.gpu.volumes.record import GpuVolumes, L1Volumes, Overlap, WaveVolumes

__all__ = ["GpuVolumes", "L1Volumes", "Overlap", "WaveVolumes", "compute_volumes"]
