"""Every test here runs on every device that is found; one session per device for all tests."""

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import BrokenDeviceError, NoDeviceError
from kernelcast.sampling.discovery import INSTALL_HINT, choose_device, find_devices
from kernelcast.sampling.session import DeviceSession, open_session
from support.browsing import Page, find_browser, open_browser
from support.postgresql_cluster import PostgresqlCluster, explain_absence

_NO_DEVICE = "no device"


@pytest.fixture(scope="session", autouse=True)
def shared_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a data folder for all tests that have none: what one has built, another finds."""
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELCAST_DATA", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def _no_earlier_samples(shared_data: Path) -> None:
    """Have each test sample for itself, whatever others have sampled, or the user before."""
    shutil.rmtree(shared_data / "samples", ignore_errors=True)


@cache
def _find_ids() -> list[str]:
    """Give the ids of the devices; the drivers are asked once."""
    try:
        return [description.id for description, _ in find_devices()]
    except NoDeviceError:
        return [_NO_DEVICE]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `device_id` once per device; ask no driver if none will run."""
    if "device_id" in metafunc.fixturenames:
        will_run = metafunc.config.option.markexpr != "not device"
        metafunc.parametrize(
            "device_id", _find_ids() if will_run else ["any device"], scope="session"
        )


@cache
def _open(device_id: str) -> DeviceSession | BrokenDeviceError:
    """Open a device once, since some runtimes compile slowly, or say why it is broken."""
    if device_id == _NO_DEVICE:
        pytest.fail(INSTALL_HINT)
    try:
        return open_session(*choose_device(device_id, find_devices()))
    except BrokenDeviceError as error:
        return error


@pytest.fixture
def session(device_id: str) -> DeviceSession:
    """Give the open session of a device; a broken one is skipped with its reason."""
    opened = _open(device_id)
    if isinstance(opened, BrokenDeviceError):
        pytest.skip(f"the device is broken: {opened}")
    return opened


@pytest.fixture
def description(session: DeviceSession) -> DeviceDescription:
    """Describe the device under test."""
    return session.description


@pytest.fixture(scope="session")
def first_device() -> DeviceDescription:
    """Describe the first device that works, for what no device can change."""
    for opened in map(_open, _find_ids()):
        if isinstance(opened, DeviceSession):
            return opened.description
    pytest.skip("every device is broken")


@pytest.fixture(scope="session")
def cluster() -> Iterator[PostgresqlCluster]:
    """Run a PostgreSQL cluster for all tests that want one."""
    pytest.importorskip("psycopg", reason="pip install 'kernelcast[postgresql]'")
    if absence := explain_absence():
        pytest.skip(absence)
    with PostgresqlCluster() as found:
        yield found


@pytest.fixture(scope="session")
def browser() -> Iterator[Page]:
    """Open one browser without a window for all tests."""
    pytest.importorskip("selenium", reason="pip install selenium")
    if find_browser() is None:
        pytest.skip("no browser: apt install chromium chromium-driver")
    chrome = open_browser()
    yield Page(chrome)
    chrome.quit()
