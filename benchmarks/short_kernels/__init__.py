"""64 kernels of kinds that no calibration holds, with their buffers."""

from short_kernels import dense, graphs, images, physics, plain, searches, sorting, sparse
from short_kernels.cases import SETS, Buffer, Case, Image, Local, Restored

CASES = SETS[__name__]

__all__ = [
    "CASES", "Buffer", "Case", "Image", "Local", "Restored",
    "dense", "graphs", "images", "physics", "plain", "searches", "sorting", "sparse",
]  # fmt: skip
