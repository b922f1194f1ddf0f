"""The host: how busy, fast and warm it is, what other programs leave of it, whose turn it is.

Who else wants to run: the system's own count of runnable threads costs one read. Where there seem
to be others than ours, threads are looked at one by one: the count holds those that have just ended
a launch, builds (PoCL's linker is a process), and the kernel's that write a runtime's cache to the
disk. On an idle machine 20 of 33 new kernels on PoCL were taken for busy by it.

What they leave to a CPU device is measured without the device: as many threads of the host as it
has work for the length of a launch, and Linux says how long they waited: beside two busy loops on
two processors launches take 1.9 to 2.5 times as long, and half a second of such work says 2.0. No
device is opened, or waited for.

Whoever builds and fills buffers shares the processors with others who do; who times work-groups has
them alone. Each waits for a while at most: a process whose kernel hangs stops no other one.
"""

import fcntl
import hashlib
import importlib
import os
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from kernelcast.records.contention import Contention
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.records.observation import MachineState

FRESH_S: Final = 2.0
"""So long a factor holds, in seconds: many launches are compared by one, and a trial takes 0.1."""
_WORK_S: Final = 40e-3
_PROCESSES = Path("/proc")
_KERNEL = 2
"""The process whose children are threads of the kernel; a container does not see it."""
# Columns of /proc/PID/stat behind the name: state, parent, and the start in ticks after the boot.
_STATE, _PARENT, _STARTED = 0, 1, 19


class Waiting(NamedTuple):
    """Seconds on a processor, and seconds ready to run without one."""

    worked_s: float
    waited_s: float


ThreadsWaiting: TypeAlias = Mapping[str, Waiting]
"""What each thread has worked and waited so far; empty where the system does not tell."""


def read_waiting() -> ThreadsWaiting:
    found = {}
    for thread in list_threads(os.getpid()):
        with suppress(OSError):  # it has just ended
            found[thread] = _read_thread(thread)
    return found


def find_waiting(before: ThreadsWaiting, after: ThreadsWaiting, seconds: float) -> Waiting | None:
    """Add up what the threads that worked for a launch have worked and waited between readings;
    None where they were busy for less than half of its length: it ran elsewhere."""
    none = Waiting(0.0, 0.0)
    spent = [
        Waiting(*(b - a for a, b in zip(before.get(name, none), one, strict=True)))
        for name, one in after.items()
    ]
    # Threads that did less than this share of what the busiest did have only looked on: what those
    # waited that wake at the end of a launch made no launch longer.
    least_s = 0.2 * max((one.worked_s for one in spent), default=0.0)
    workers = [one for one in spent if one.worked_s > least_s]
    worked_s, waited_s = (sum(column) for column in zip(none, *workers, strict=True))
    is_own = worked_s > 0 and worked_s + waited_s >= 0.5 * seconds
    return Waiting(worked_s, waited_s) if is_own else None


class ContentionMeter:
    """Measures what other programs leave to devices now; threads share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: dict[str, int] = {}
        """Of CPU devices, by their ids."""
        self._last: dict[int, tuple[float, Contention | None]] = {}
        self._waiting: ThreadsWaiting = {}
        self._others, self._counted_until_s = 0, 0.0

    def note(self, device: DeviceDescription) -> None:
        if device.kind is DeviceKind.CPU and device.id not in self._threads:
            self._threads[device.id] = min(device.compute_units, os.cpu_count() or 1)
            self._waiting = self._waiting or read_waiting()

    def measure(self, device_id: str) -> Contention | None:
        """Measure, unless that was done just now; None where nothing is seen of others."""
        threads = self._threads.get(device_id)
        with self._lock:
            if threads is None or not self._count_others():
                return None
            until_s, found = self._last.get(threads, (0.0, None))
            if time.monotonic() > until_s:
                found = None
                time.sleep(1e-3)  # who was only woken has done what it had to
                if others := count_others():
                    with ThreadPoolExecutor(threads) as pool, suppress(OSError, ValueError):
                        found = _tell([*pool.map(_work, range(threads))], others)
                self._last[threads] = (time.monotonic() + FRESH_S, found)
            return found

    def judge_run(self, device_id: str, seconds: float) -> Contention | None:
        """Say what a launch of some seconds met that has just ended: if it ran in this process,
        threads that have worked since the last such question tell."""
        if device_id not in self._threads:
            return None
        with self._lock:
            before, self._waiting = self._waiting, read_waiting()
            spent = find_waiting(before, self._waiting, seconds)
            if spent is not None:
                others = self._count_others()
                return _tell([spent], others) if others else None
        return self.measure(device_id)

    def _count_others(self) -> int:
        if time.monotonic() > self._counted_until_s:
            self._others = count_others()
            # A count holds so long: to make one takes some milliseconds.
            self._counted_until_s = time.monotonic() + 0.1
        return self._others


METER: Final = ContentionMeter()


def count_others() -> int:
    """Count threads of other programs that run or want to; 0 where that cannot be read."""
    own = sum(map(_is_running, list_threads(os.getpid())))
    try:
        running = int(_read("loadavg").split()[3].partition(b"/")[0])
    except (OSError, IndexError, ValueError):
        return 0
    if running <= max(own, 1):
        return 0
    # What a container does not show may be others': ours are then all that is known not to be.
    is_all_seen = (_PROCESSES / str(_KERNEL)).is_dir()
    is_seen = any(_list_running())
    if is_seen or not is_all_seen:
        own = max(own, sum(map(_is_running, list_threads(os.getpid()))), 1 - is_seen)
        return max(running - own, int(is_seen))
    return 0


def runs_besides(threads: Iterable[int | None]) -> bool:
    left_out = {f"{os.getpid()}/task/{number}" for number in threads}
    return any(_is_running(one) for one in list_threads(os.getpid()) if one not in left_out)


def _list_running() -> Iterator[bool]:
    """Tell of processes of other programs whether a thread runs; of each that can be read."""
    own = os.getpid()
    with suppress(OSError, ValueError, IndexError):
        # A child process so young, in seconds, is a runtime's linker or has not kept anybody
        # waiting yet.
        youngest_s = float(_read("uptime").split()[0]) - 1.0
        for name in os.listdir(_PROCESSES):  # noqa: PTH208 - names
            if not name.isdigit() or int(name) in {own, _KERNEL}:
                continue
            told = _read_stat(name)
            if not told or int(told[_PARENT]) == _KERNEL:
                continue
            started_s = int(told[_STARTED]) / os.sysconf("SC_CLK_TCK")
            if int(told[_PARENT]) == own and started_s > youngest_s:
                continue
            yield told[_STATE] == b"R" or any(map(_is_running, list_threads(int(name))))


def list_threads(process: int) -> list[str]:
    with suppress(OSError):
        tasks = os.listdir(f"{_PROCESSES}/{process}/task")  # noqa: PTH208 - names
        return [f"{process}/task/{one}" for one in tasks]
    return []


def _is_running(thread: str) -> bool:
    return _read_stat(thread)[:1] == [b"R"]


def _read_stat(folder: str) -> list[bytes]:
    with suppress(OSError):
        return _read(f"{folder}/stat").rpartition(b")")[2].split()
    return []


def _read_thread(folder: str) -> Waiting:
    worked, waited, *_ = _read(f"{folder}/schedstat").split()
    return Waiting(int(worked) * 1e-9, int(waited) * 1e-9)


def _read(name: str) -> bytes:
    # Hundreds of them at a time: pathlib takes longer than the system.
    with open(f"{_PROCESSES}/{name}", "rb", buffering=0) as file:  # noqa: PTH123
        return file.read()


def _work(number: int) -> Waiting:
    """Work for the length of a launch; give what the system says of it."""
    before = _read_thread("thread-self")
    ends_s = time.thread_time() + _WORK_S
    while time.thread_time() < ends_s:
        # Some milliseconds, without Python's lock.
        hashlib.pbkdf2_hmac("sha256", b"work", str(number).encode(), 20_000)
    after = _read_thread("thread-self")
    return Waiting(after.worked_s - before.worked_s, after.waited_s - before.waited_s)


def _tell(spent: list[Waiting], others: int) -> Contention:
    return Contention(
        worked_s=sum(one.worked_s for one in spent),
        waited_s=sum(one.waited_s for one in spent),
        others=others,
        measured_at=datetime.now(UTC),
    )


class CoreTurns:
    """Turns of this process, of at most some wait; none before there is a file to lock."""

    def __init__(self, most_s: float = 1.0) -> None:
        self._most_s = most_s
        self._descriptor: int | None = None

    def use(self, descriptor: int) -> None:
        """Take turns with the processes that have opened the same file, each by itself."""
        os.set_inheritable(descriptor, False)  # compilers that drivers start must not keep it open
        self._descriptor = descriptor

    def preparing(self) -> AbstractContextManager[None]:
        return self._holding(fcntl.LOCK_SH)

    def measuring(self) -> AbstractContextManager[None]:
        """Let nobody else prepare or measure meanwhile; a turn of this process ends before."""
        return self._holding(fcntl.LOCK_EX)

    @contextmanager
    def _holding(self, kind: int) -> Iterator[None]:
        if self._descriptor is None:
            yield
            return
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        ends_s = time.monotonic() + self._most_s
        while True:
            try:
                fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= ends_s:
                    break
                time.sleep(1e-3)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)


TURNS = CoreTurns()


def take_turns_by(descriptor: str) -> None:
    TURNS.use(int(descriptor))


def read_work(threads: Sequence[int] = ()) -> dict[int, float]:
    """Read the processor time of threads, 0 for whichever calls, or of all of this process, in
    seconds by their numbers; of none where the system does not tell."""
    # Linux's clock of a process counts a thread on another processor up to its last tick only,
    # which may be four milliseconds ago; a thread's own clock is exact.
    found = {}
    for number in threads or [int(one.rpartition("/")[2]) for one in list_threads(os.getpid())]:
        with suppress(OSError):  # it has just ended
            # clock_gettime(2): bits of the clock that counts one thread's nanoseconds.
            clock = (~(number or threading.get_native_id()) << 3) | 0b110
            found[number] = time.clock_gettime(clock)
    return found


def read_cores(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+(-\d+)?(\+\d+(-\d+)?)*", text):
        msg = f"cores {text!r}: give numbers and ranges joined by +, for example 0 or 0-3 or 0+2"
        raise InputError(msg)
    found: list[int] = []
    for part in text.split("+"):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(dict.fromkeys(found))


def bind_to_cores(cores: Sequence[int], environment: MutableMapping[str, str] = os.environ) -> None:
    """Bind this process to cores; to be called before a runtime is loaded."""
    if not cores:
        return
    if sys.platform != "linux":
        raise InputError("processes cannot be bound to cores on this system; leave the cores out")
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:
        allowed = ", ".join(str(one) for one in sorted(os.sched_getaffinity(0)))
        msg = f"cores {list(cores)}: cannot be used ({error.strerror}); there are: {allowed}"
        raise InputError(msg) from error
    count = str(len(cores))
    # Runtimes start a thread per core of the machine, and PoCL ties each to a core of its choice.
    environment.update(
        {
            "POCL_AFFINITY": "0",
            "POCL_MAX_PTHREAD_COUNT": count,  # PoCL up to 4
            "POCL_CPU_MAX_CU_COUNT": count,  # PoCL from 4 on
            "LP_NUM_THREADS": count,  # llvmpipe
            "DPCPP_CPU_NUM_CUS": count,  # Intel's runtime
        }
    )


_CLOCKS = Path("/sys/devices/system/cpu/cpu0/cpufreq")
_THERMAL = Path("/sys/class/thermal")
_HARDWARE_MONITORS = Path("/sys/class/hwmon")
_STATISTICS = Path("/proc/stat")
# Columns of /proc/stat's first line: user, nice, system, idle, iowait, irq, softirq, steal.
_BUSY, _STOLEN = (0, 1, 2, 5, 6), 7


class Processor(NamedTuple):
    """The host's processor; what cannot be read is empty."""

    name: str
    generation: str


class ProcessorTimes(NamedTuple):
    """Seconds that processors have spent so far, all together; None is what cannot be read."""

    at_s: float
    busy_s: float | None
    stolen_s: float | None
    """Waiting for the host of a virtual machine."""
    own_s: float
    """With this process and its children that have ended."""


def read_processor_times() -> ProcessorTimes:
    busy_s = stolen_s = None
    words = read_told(_STATISTICS).split("\n", 1)[0].split()
    if words[:1] == ["cpu"] and len(words) > _STOLEN + 1:
        ticks = [int(word) for word in words[1:]]
        tick_s = 1 / os.sysconf("SC_CLK_TCK")
        busy_s = sum(ticks[column] for column in _BUSY) * tick_s
        stolen_s = ticks[_STOLEN] * tick_s
    own_s = sum(os.times()[:4])  # with children
    return ProcessorTimes(at_s=time.monotonic(), busy_s=busy_s, stolen_s=stolen_s, own_s=own_s)


def read_state_since(before: ProcessorTimes, gpu: str = "") -> MachineState:
    """Read the machine's state, with the clock of a GPU of that name, and what others have done."""
    now = read_processor_times()
    clocks_khz = _read_numbers([_CLOCKS / "scaling_cur_freq"])
    clock_hz = clocks_khz[0] * 1e3 if clocks_khz else None
    if gpu:
        clock_hz = None
        library, handle = _find_gpu(gpu)
        if handle is not None:
            with suppress(library.NVMLError):  # behind a launch the launch's
                clock_hz = library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_SM) * 1e6
    sensors = [*_THERMAL.glob("thermal_zone*/temp"), *_HARDWARE_MONITORS.glob("hwmon*/temp*_input")]
    temperatures = _read_numbers(sensors)
    state = MachineState(
        load=read_load(),
        governor=read_told(_CLOCKS / "scaling_governor") or None,
        temperature_celsius=max(temperatures) / 1e3 if temperatures else None,
        clock_hz=clock_hz,
    )
    elapsed_s = now.at_s - before.at_s
    if before.busy_s is None or now.busy_s is None or elapsed_s <= 0:
        return state
    others_s = (now.busy_s - before.busy_s) - (now.own_s - before.own_s)
    stolen_s = (now.stolen_s or 0.0) - (before.stolen_s or 0.0)
    return replace(
        state,
        others_busy=max(others_s, 0.0) / elapsed_s,
        stolen=max(stolen_s, 0.0) / elapsed_s,
    )


@cache
def _find_gpu(name: str) -> tuple[Any, Any]:
    """Find the library that manages NVIDIA's GPUs, and the first GPU of a name."""
    try:
        library: Any = importlib.import_module("pynvml")
    except ImportError:
        return None, None
    try:
        library.nvmlInit()
        gpus = map(library.nvmlDeviceGetHandleByIndex, range(library.nvmlDeviceGetCount()))
        return library, next((one for one in gpus if library.nvmlDeviceGetName(one) == name), None)
    except library.NVMLError:  # no driver, or none that manages
        return None, None


@cache
def read_processor() -> Processor:
    first = read_told(Path("/proc/cpuinfo")).split("\n\n", 1)[0]
    pairs = (line.partition(":") for line in first.splitlines())
    said = {key.strip(): value.strip() for key, _, value in pairs}
    # What tells generations apart on x86 and on Arm, besides the names.
    keys = ("cpu family", "model", "CPU implementer", "CPU part")
    generation = " ".join(filter(None, (said.get(key, "") for key in keys)))
    return Processor(name=said.get("model name", ""), generation=generation)


def read_load() -> float | None:
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def _read_numbers(paths: Iterable[Path]) -> list[float]:
    found = []
    for path in paths:
        with suppress(ValueError):
            found.append(float(read_told(path)))
    return found


def read_told(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
