"""One measurement at a time on a device, also between processes."""

import subprocess
import sys
import threading
import time
from pathlib import Path

from kernelcast.service.device_lock import DeviceLock, hold_device

_HOLD = """
import sys, time
from kernelcast.service.device_lock import DeviceLock
lock = DeviceLock("a/b c")
assert lock.acquire()
print("held", flush=True)
time.sleep(600)
"""


def test_a_lock_of_a_killed_process_is_free(folder: Path) -> None:
    """It holds while the process lives, and not a moment longer."""
    process = subprocess.Popen([sys.executable, "-c", _HOLD], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    lock = DeviceLock("a/b c")
    assert not lock.acquire(0.05)
    assert DeviceLock("another").acquire(0.05)
    process.kill()
    process.wait()
    process.stdout.close()
    assert lock.acquire()
    lock.release()
    assert all(one.parent == folder / "locks" for one in folder.rglob("*.lock"))


def test_who_waits_comes_before_a_job_that_goes_on(folder: Path) -> None:
    """Between two steps of a job an estimate gets its turn."""
    del folder
    order: list[str] = []

    def estimate() -> None:
        lock = DeviceLock("x")
        assert lock.acquire()
        order.append("estimate")
        lock.release()

    with hold_device("x") as let_others_in:
        order.append("first step")
        thread = threading.Thread(target=estimate)
        thread.start()
        door = DeviceLock("x")._door
        while door.try_acquire():  # nobody stands there yet
            door.release()
            time.sleep(0.005)
        let_others_in()
        order.append("second step")
    thread.join()
    assert order == ["first step", "estimate", "second step"]
