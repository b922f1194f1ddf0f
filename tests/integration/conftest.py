"""Every test here runs on every device that is found; one session per device for all tests."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from kernelcast.calibration.calibration import measure_benchmark
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import BrokenDeviceError, NoDeviceError
from kernelcast.sampling.discovery import INSTALL_HINT, choose_device, find_devices
from kernelcast.sampling.microbenchmarks import instructions
from kernelcast.sampling.microbenchmarks.bench import FEWEST_REPEATS, Bench, BenchmarkResult, Effort
from kernelcast.sampling.session import DeviceSession, open_session

BenchmarkRunner: TypeAlias = Callable[..., BenchmarkResult]
_MOST_RUNS = 3
_NO_DEVICE = "no device"
_IDS: list[str] = []
# Arrays of four times the last cache, long runs and wide kernels make numbers good, and take
# minutes on a busy machine; no promise of the tests depends on them.
_IS_FULL = bool(os.environ.get("KERNELCAST_FULL_BENCHMARKS"))
_LARGEST_ARRAY_BYTES = 2**20
_PEAK_SHAPES = slice(0, 8, 4)


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
    opened = _open_once(device_id, sessions)
    if isinstance(opened, BrokenDeviceError):
        pytest.skip(f"the device is broken: {opened}")
    return opened


def _open_once(
    device_id: str, sessions: dict[str, DeviceSession | BrokenDeviceError]
) -> DeviceSession | BrokenDeviceError:
    if device_id not in sessions:
        try:
            sessions[device_id] = open_session(*choose_device(device_id, find_devices()))
        except BrokenDeviceError as error:
            sessions[device_id] = error
    return sessions[device_id]


@pytest.fixture
def description(session: DeviceSession) -> DeviceDescription:
    """Describe the device under test."""
    return session.description


@pytest.fixture(scope="session")
def first_device(
    sessions: dict[str, DeviceSession | BrokenDeviceError],
) -> DeviceDescription:
    """Describe the first device that works, for what no device can change."""
    for device_id in _find_ids():
        if device_id == _NO_DEVICE:
            pytest.fail(INSTALL_HINT)
        opened = _open_once(device_id, sessions)
        if isinstance(opened, DeviceSession):
            return opened.description
    pytest.skip("every device is broken")


@pytest.fixture(scope="session")
def run_benchmark() -> BenchmarkRunner:
    """Run a microbenchmark once per device for all tests, with short runs and small arrays.

    Again where a result is not as `until` asks: a neighbour on the machine may have disturbed it.
    """
    benches: dict[str, Bench] = {}
    results: dict[tuple[str, str], BenchmarkResult] = {}

    def run(
        session: DeviceSession,
        name: str,
        until: Callable[[BenchmarkResult], bool] = lambda _: True,
    ) -> BenchmarkResult:
        device_id = session.description.id
        key = (device_id, name)
        for _ in range(_MOST_RUNS):
            if key in results and until(results[key]):
                break
            with session.lock, pytest.MonkeyPatch.context() as changes:
                bench = benches.setdefault(device_id, Bench(session, Effort.QUICK))
                if not _IS_FULL:
                    _shorten(bench, changes)
                results[key] = measure_benchmark(bench, name)
        return results[key]

    return run


def _shorten(bench: Bench, changes: pytest.MonkeyPatch) -> None:
    """Make the quickest effort quicker than any that is offered.

    Caches that the arrays fit in are left out: the last one of a server has 100 MiB and more.
    """
    bench.repeats, bench.run_s, bench.patience_s = FEWEST_REPEATS, 0.5e-3, 0.0
    bench.most_bytes = _LARGEST_ARRAY_BYTES
    bench.host_caches = tuple(
        one
        for one in bench.host_caches
        if one.size_bytes and 4 * one.size_bytes.value <= _LARGEST_ARRAY_BYTES
    )
    changes.setattr(instructions, "CHAINS", instructions.CHAINS[:2])
    changes.setattr(instructions, "PEAK_SHAPES", instructions.PEAK_SHAPES[_PEAK_SHAPES])
