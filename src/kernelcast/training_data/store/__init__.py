"""The store of observations: SQLite in one file, or PostgreSQL that several machines share."""

from kernelcast.training_data.store.errors import StoreError
from kernelcast.training_data.store.opening import open_store
from kernelcast.training_data.store.selection import Selection
from kernelcast.training_data.store.store import Store
from kernelcast.training_data.store.writing import AddedRows

__all__ = [
    "AddedRows",
    "Selection",
    "Store",
    "StoreError",
    "open_store",
]
