"""What the predictor service remembers, and the store beside it."""

from kernelcast.training_data.service_state import (
    OBSERVATIONS_CHANGED,
    ServiceState,
    find_state,
    open_state,
)
from kernelcast.training_data.store import AddedRows, Store, StoreError

__all__ = [
    "OBSERVATIONS_CHANGED",
    "AddedRows",
    "ServiceState",
    "Store",
    "StoreError",
    "find_state",
    "open_state",
]
