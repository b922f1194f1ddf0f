"""What the predictor service remembers, and the store beside it."""

from kernelcast.training_data.service_state import ServiceState, open_state
from kernelcast.training_data.store import AddedRows, Store, StoreError

__all__ = ["AddedRows", "ServiceState", "Store", "StoreError", "open_state"]
