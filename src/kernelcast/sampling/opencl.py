"""The one place that imports pyopencl: the loader must be prepared before the first import."""

from kernelcast.sampling.runtimes import ensure_vendors

ensure_vendors()

import pyopencl as cl  # noqa: E402 - see above

__all__ = ["cl"]
