"""The store of observations: SQLite in one file, or PostgreSQL that several machines share."""

from kernelcast.training_data.store.connecting import StoreError as StoreError
from kernelcast.training_data.store.schema import Selection as Selection
from kernelcast.training_data.store.store import AddedRows as AddedRows
from kernelcast.training_data.store.store import Store as Store
from kernelcast.training_data.store.store import open_store as open_store
