"""Clocks that a kernel can read, and whether they can be believed.

============================  =====================================  =================
clock                         where                                  ticks
============================  =====================================  =================
`clock_read_device()`         cl_khr_kernel_clock, OpenCL C 2.0 on   the device's own
`__builtin_readcyclecounter`  PoCL and Intel's runtime on x86-64     processor cycles
`%globaltimer`, `%smid`       NVIDIA, inline PTX                     nanoseconds
`s_memrealtime`               AMD, GCN to RDNA 2                     10 ns, mostly
============================  =====================================  =================

Intel's runtime declares `clock_read_device` from ``-cl-std=CL2.0`` on, without any pragma or
feature macro, and counts nanoseconds in steps of 10. Of the second clock one must know where it
works: Mesa's compiler ends the process that names it.
"""

import platform
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import KernelRunError
from kernelcast.sampling.building import build_program
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession

_HAS_CYCLE_COUNTER = ("Portable Computing Language", "Intel(R) OpenCL")
_X86 = ("x86_64", "AMD64")
_READINGS = 256
_NANOSECOND = 1e-9

_CHECK = """
kernel void kc_read_clock(global ulong *readings, int count)
{
    for (int i = 0; i < count; ++i)
        readings[i] = kc_clock();
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelClock:
    """A clock that kernels can read."""

    name: str
    """What answers call it."""
    declarations: str
    """OpenCL C that defines ``ulong kc_clock(void)`` and ``ulong kc_unit(void)``, the compute unit
    that a work-item runs on."""
    build_options: tuple[str, ...] = ()
    """What the compiler needs beside a kernel's own options."""
    tells_unit: bool = False
    """Whether `kc_unit` knows."""
    counts_cycles: bool = False
    """Whether a tick is a processor's cycle; else about a nanosecond is taken as exactly one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockCheck:
    tick_s: float
    resolution_s: float
    """Least difference seen between two readings, in seconds."""


_NO_UNIT = "static inline ulong kc_unit(void) { return 0; }\n"
_DEVICE_CLOCK = KernelClock(
    name="cl_khr_kernel_clock",
    declarations="#pragma OPENCL EXTENSION cl_khr_kernel_clock : enable\n"
    "static inline ulong kc_clock(void) { return clock_read_device(); }\n" + _NO_UNIT,
)
# volatile and the clobber keep the reading where it stands among loads and stores.
_PTX = KernelClock(
    name="PTX globaltimer",
    declarations="""\
static inline ulong kc_clock(void)
{ ulong now; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) : : "memory"); return now; }
static inline ulong kc_unit(void)
{ uint unit; asm volatile("mov.u32 %0, %%smid;" : "=r"(unit)); return unit; }
""",
    tells_unit=True,
)
# Counts at one rate whatever the shader clock does; later chips' compilers refuse it.
_REAL_TIME = KernelClock(
    name="AMD real time",
    declarations="static inline ulong kc_clock(void)"
    " { return __builtin_amdgcn_s_memrealtime(); }\n" + _NO_UNIT,
)
_CYCLES = KernelClock(
    name="cycle counter",
    declarations="static inline ulong kc_clock(void)"
    " { return __builtin_readcyclecounter(); }\n" + _NO_UNIT,
    counts_cycles=True,
)


def list_clocks(description: DeviceDescription, options: Sequence[str]) -> list[KernelClock]:
    """List the clocks that a device is known to have, best first; build options that choose OpenCL
    C 1.x rule out `clock_read_device`."""
    language = re.search(r"-cl-std=CL(?P<version>[\d.]+)", " ".join(options))
    is_old = language is not None and float(language["version"][:3]) < 2
    is_x86 = description.kind is DeviceKind.CPU and platform.machine() in _X86
    needed = () if language else ("-cl-std=CL3.0",)
    conditions = {
        replace(_DEVICE_CLOCK, build_options=needed): "cl_khr_kernel_clock"
        in description.extensions
        and not is_old,
        _PTX: "cl_nv_device_attribute_query" in description.extensions,
        _REAL_TIME: "cl_amd_device_attribute_query" in description.extensions,
        _CYCLES: is_x86 and description.platform in _HAS_CYCLE_COUNTER,
    }
    return [clock for clock, has in conditions.items() if has]


def check_clock(session: DeviceSession, clock: KernelClock) -> ClockCheck:
    """Read a clock twice some 50 ms apart, to see that it goes forward and how fast."""
    source = clock.declarations + _CHECK
    program = build_program(session.context, session.device, source, clock.build_options)
    kernel = cl.Kernel(program, "kc_read_clock")
    buffer = cl.Buffer(session.context, cl.mem_flags.READ_WRITE, size=8 * _READINGS)
    kernel.set_args(buffer, np.int32(_READINGS))

    def read() -> tuple[float, float, npt.NDArray[np.int64]]:
        """Read in several launches; give the one whose moment the host knows best."""
        launches = []
        for _ in range(5):  # a busy host may lose milliseconds in any but the shortest
            readings = np.zeros(_READINGS, dtype=np.uint64)
            session.queue.finish()
            begin_s = time.perf_counter()
            cl.enqueue_nd_range_kernel(session.queue, kernel, (1,), (1,))
            session.queue.finish()
            end_s = time.perf_counter()
            cl.enqueue_copy(session.queue, readings, buffer)
            launches.append((end_s - begin_s, (begin_s + end_s) / 2, readings.astype(np.int64)))
        return min(launches, key=lambda one: one[0])

    read()  # the first launch compiles
    _, first_s, first = read()
    time.sleep(0.05)
    _, second_s, second = read()
    buffer.release()
    changes = np.diff(np.concatenate([first, second]))
    if (changes < 0).any() or not (changes > 0).any() or second[-1] == first[-1]:
        msg = f"the clock {clock.name} stands still or goes backwards ({first[:4].tolist()} ...)"
        raise KernelRunError(msg)
    tick_s = (second_s - first_s) / float((second - first).mean())
    if not clock.counts_cycles and abs(tick_s / _NANOSECOND - 1) < 0.02:
        tick_s = _NANOSECOND
    return ClockCheck(tick_s=tick_s, resolution_s=int(changes[changes > 0].min()) * tick_s)
