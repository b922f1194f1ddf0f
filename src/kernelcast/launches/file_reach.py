"""Whether a submitted source could make a compiler open a file."""

from kernelcast.features.file_reach import check_reach

__all__ = ["check_reach"]
