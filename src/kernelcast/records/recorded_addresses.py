"""Addresses that an instrumented kernel wrote down."""

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import RecordingError

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedAddresses:
    """Memory accesses of some work-groups, one by one, in any order."""

    work_groups: tuple[int, ...]
    """Numbers of the work-groups that were recorded, dimension 0 fastest."""
    work_items: tuple[int, ...]
    """How many work-items each of them has."""
    sites: IntArray
    """Shape (accesses,). Place in the source: `MemoryAccess.site`."""
    groups: IntArray
    local_ids: IntArray
    """Shape (accesses,). Local linear id of the work-item."""
    sequences: IntArray
    """Shape (accesses,). How often the work-item had executed the site before."""
    buffers: IntArray
    """Shape (accesses,). Index of the kernel's parameter that the address belongs to; local arrays
    are numbered behind the parameters; -1 if it is not known."""
    offsets_bytes: IntArray
    """Shape (accesses,). Offset from the start of the buffer, or any address if the buffer is not
    known."""

    def __post_init__(self) -> None:
        columns = [one.name for one in fields(self) if not one.name.startswith("work_")]
        shapes = {name: getattr(self, name).shape for name in columns}
        if set(shapes.values()) != {(self.sites.size,)}:
            msg = f"columns have shapes {shapes}; expected one number per access in each"
            raise RecordingError(msg)
        if len(self.work_items) != len(self.work_groups):
            msg = (
                f"{len(self.work_groups)} work-groups, but sizes of {len(self.work_items)}; "
                "give one size per work-group"
            )
            raise RecordingError(msg)
        strangers = set(np.unique(self.groups).tolist()) - set(self.work_groups)
        if strangers:
            msg = f"accesses of work-group {min(strangers)}, which is not in {self.work_groups}"
            raise RecordingError(msg)
