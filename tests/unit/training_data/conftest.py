from pathlib import Path

import pytest

from kernelcast.training_data.store import Store, open_store
from support.observations import make_observation


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Open a store with twenty sound rows."""
    store = open_store(tmp_path / "rows.sqlite")
    store.add_many(map(make_observation, range(20)))
    return store
