"""Every test here runs on every device that is found; one session per device for all tests."""

import pytest

from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import BrokenDeviceError, NoDeviceError
from kernelcast.sampling.discovery import INSTALL_HINT, choose_device, find_devices
from kernelcast.sampling.session import DeviceSession, open_session

_NO_DEVICE = "no device"
_IDS: list[str] = []


def _find_ids() -> list[str]:
    """Give the ids of the devices; the drivers are asked once."""
    if not _IDS:
        try:
            _IDS.extend(description.id for description, _ in find_devices())
        except NoDeviceError:
            _IDS.append(_NO_DEVICE)
    return _IDS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `device_id` once per device; ask no driver if none will run."""
    if "device_id" in metafunc.fixturenames:
        will_run = metafunc.config.option.markexpr != "not device"
        metafunc.parametrize(
            "device_id", _find_ids() if will_run else ["any device"], scope="session"
        )


@pytest.fixture(scope="session")
def sessions() -> dict[str, DeviceSession | BrokenDeviceError]:
    """Keep what opening each device led to, since some runtimes compile slowly."""
    return {}


@pytest.fixture
def session(
    device_id: str, sessions: dict[str, DeviceSession | BrokenDeviceError]
) -> DeviceSession:
    """Give the open session of a device; a broken one is skipped with its reason."""
    if device_id == _NO_DEVICE:
        pytest.fail(INSTALL_HINT)
    if device_id not in sessions:
        try:
            sessions[device_id] = open_session(*choose_device(device_id, find_devices()))
        except BrokenDeviceError as error:
            sessions[device_id] = error
    opened = sessions[device_id]
    if isinstance(opened, BrokenDeviceError):
        pytest.skip(f"the device is broken: {opened}")
    return opened


@pytest.fixture
def description(session: DeviceSession) -> DeviceDescription:
    """Describe the device under test."""
    return session.description
