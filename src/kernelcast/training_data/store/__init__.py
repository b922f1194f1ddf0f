"""The store of observations: SQLite in one file, or PostgreSQL that several machines share."""

from kernelcast.training_data.store.connecting import StoreError
from kernelcast.training_data.store.schema import Selection
from kernelcast.training_data.store.store import AddedRows, Store, open_store

__all__ = [
    "AddedRows",
    "Selection",
    "Store",
    "StoreError",
    "open_store",
]
