import subprocess
import sys
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from kernelcast.predictor.background import ObservationLostError, ObservationWriter
from kernelcast.records.errors import KernelcastError
from kernelcast.training_data.store import open_store
from support.observations import make_observation

PROGRAM = """
import sys
from kernelcast.predictor.background import ObservationWriter
from support.observations import make_observation
from kernelcast.training_data.store import open_store
writer = ObservationWriter(lambda: open_store(sys.argv[1]))
for number in range(1000):
    writer.add(make_observation(number))
raise KeyboardInterrupt
"""


def test_ctrl_c_loses_nothing(tmp_path: Path) -> None:
    """A program that ends by an interrupt has written all that it has handed over."""
    path = tmp_path / "rows.sqlite"
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], check=False, capture_output=True, text=True
    )
    assert "KeyboardInterrupt" in ended.stderr
    with open_store(path) as store:
        assert store.count() == 1000


def test_a_store_that_comes_back_gets_all(tmp_path: Path) -> None:
    """While a store does not answer observations wait; a flush says so, and nothing is lost."""
    with open_store(tmp_path / "rows.sqlite") as store:
        find = Mock(return_value=store, side_effect=KernelcastError("the server is away"))
        writer = ObservationWriter(find)
        for number in range(10):
            writer.add(make_observation(number))
        with pytest.raises(ObservationLostError, match=r"10 observations.*the server is away"):
            writer.flush(timeout_s=0.5)
        find.side_effect = None
        writer.close()
        assert store.count() == 10


def test_a_writer_that_has_nothing_to_do_costs_nothing(tmp_path: Path) -> None:
    """Its thread ends, also where it was told to hurry; the next observation starts another."""

    def list_threads() -> list[str]:
        return [one.name for one in threading.enumerate() if one.name == "kernelcast-observations"]

    with open_store(tmp_path / "rows.sqlite") as store:
        writer = ObservationWriter(lambda: store)
        for number in range(2):
            writer.add(make_observation(number))
            for _ in range(2):
                writer.flush()
            ends_s = time.monotonic() + 20.0
            while list_threads() and time.monotonic() < ends_s:
                time.sleep(0.01)
            assert not list_threads()
        writer.close()
        assert store.count() == 2
