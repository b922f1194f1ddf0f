"""The list of devices that was asked for last."""

import os
import time
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from kernelcast.launches import devices
from kernelcast.launches.devices import (
    forget_devices,
    recall_devices,
    refuse_unknown_ids,
    remember_devices,
)
from kernelcast.records.errors import UnknownDeviceError
from kernelcast.sampling.runtimes import list_runtime_files
from kernelcast.workers import WarmChildren
from support.builders import make_description

DEVICE = make_description()


@pytest.fixture(autouse=True)
def vendors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder of runtimes with one in it, and an empty data folder."""
    folder = tmp_path / "vendors"
    folder.mkdir()
    (folder / "one.icd").write_text(f"{tmp_path / 'libone.so'}\n")
    (tmp_path / "libone.so").write_bytes(b"1")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(folder))
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path / "data"))
    return folder


def test_a_list_comes_back_as_it_was() -> None:
    """Until it is forgotten; before there is one there is none."""
    assert recall_devices() is None
    refuse_unknown_ids(["no-such"])
    remember_devices([DEVICE])
    assert recall_devices() == [DEVICE]
    forget_devices()
    assert recall_devices() is None


def test_what_is_old_or_damaged_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drivers are asked again; nothing else comes of it, nor of a folder that cannot be written."""
    remember_devices([DEVICE])
    [path] = (tmp_path / "data").glob("*.json")
    then_s = time.time() - 3700.0
    os.utime(path, (then_s, then_s))
    assert recall_devices() is None
    for text in (b"", b"\n[]", b"{", b"\xff\n[]"):
        path.write_bytes(text)
        assert recall_devices() is None
    monkeypatch.setenv("KERNELCAST_DATA", str(path / "data"))
    remember_devices([DEVICE])
    assert recall_devices() is None


def test_another_runtime_may_bring_other_devices(
    vendors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runtimes are told by the environment ends a list, as does a runtime or its library that
    comes, goes or changes; what they are not told does not."""
    remember_devices([DEVICE])
    monkeypatch.setenv("KERNELCAST_TEST_OF_NOTHING", "1")
    assert recall_devices() == [DEVICE]
    monkeypatch.setenv("POCL_DEVICES", "cpu cpu")
    assert recall_devices() is None
    monkeypatch.delenv("POCL_DEVICES")
    assert recall_devices() == [DEVICE]
    (vendors / "two.icd").write_text("libtwo.so.1\n")
    assert recall_devices() is None
    (vendors / "two.icd").unlink()
    remember_devices([DEVICE])
    (vendors.parent / "libone.so").write_bytes(b"22")
    assert vendors.parent / "libone.so" in list_runtime_files()
    assert recall_devices() is None


def test_who_asks_a_device_next_does_without_the_drivers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that stands tells right ids and wrong ones; whoever wants to know it all asks anew."""
    tell = MagicMock(return_value=(DEVICE,))
    monkeypatch.setattr(devices, "run_isolated", tell)
    assert devices.list_descriptions() == [DEVICE]
    assert devices.choose_devices(["fake"], WarmChildren()) == [DEVICE]
    with pytest.raises(UnknownDeviceError, match="the devices here are: fake-device-0000"):
        refuse_unknown_ids(["no-such"])
    with pytest.raises(UnknownDeviceError, match="no-such"):
        devices.choose_devices(["no-such"], WarmChildren())
    assert tell.call_count == 1
    assert devices.choose_devices(["fake"]) == [DEVICE]
    assert tell.call_count == 2
