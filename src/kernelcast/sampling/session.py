"""One device with its context, queue and built programs, used by one measurement at a time."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property

from kernelcast.records.device import DeviceDescription, SaturationPoint
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.behaviour import DeviceBehaviour, measure_behaviour, settle
from kernelcast.sampling.building import build_kernel_source, build_program
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.prelude import add_prelude, needs_prelude
from kernelcast.sampling.probes import Probe
from kernelcast.sampling.trial import try_device

_PROGRAMS_KEPT = 64
_WHOLE = "as it is"


class DeviceSession:
    """What is worth keeping between two estimates on the same device.

    Parameters
    ----------
    description : DeviceDescription
        The device.
    context : pyopencl.Context
        A context with the device; buffers given to launches belong to it.
    device : pyopencl.Device
        The device's handle.
    uses_event_timer : bool
        Whether profiling events are believed; else the host clock is read around each launch.

    Notes
    -----
    `lock` serialises measurements: two kernels timed at once would time each other.
    """

    def __init__(
        self,
        description: DeviceDescription,
        context: cl.Context,
        device: cl.Device,
        *,
        uses_event_timer: bool,
    ) -> None:
        self.description = description
        self.context = context
        self.device = device
        self.uses_event_timer = uses_event_timer
        self.queue = cl.CommandQueue(
            context, device, properties=cl.command_queue_properties.PROFILING_ENABLE
        )
        self.lock = threading.RLock()
        self.saturation_points: dict[tuple[str, tuple[int, ...]], SaturationPoint] = {}
        self.warmed: set[tuple[str, tuple[int, ...]]] = set()
        self.chosen_local_sizes: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._programs: OrderedDict[tuple[str, str], cl.Program] = OrderedDict()

    @cached_property
    def probe(self) -> Probe:
        """The probe kernels, built for this device."""
        program = build_program(self.context, self.device, Probe.SOURCE, ())
        return Probe(self.queue, program, uses_event_timer=self.uses_event_timer)

    @cached_property
    def behaviour(self) -> DeviceBehaviour:
        """How the device behaves as a whole; measured at the first call."""
        return measure_behaviour(self.probe)

    def settle(self) -> None:
        """Keep the device busy until it runs at its usual rate."""
        settle(self.probe, self.behaviour)

    def whole_program(self, kernel: Kernel) -> cl.Program:
        """Build, or find built, the kernel's source as it is."""
        return self._remember(
            (kernel.digest, _WHOLE),
            lambda: build_kernel_source(self.context, self.device, kernel),
        )

    def window_program(self, kernel: Kernel, ndrange: NDRange) -> cl.Program:
        """Build, or find built, the program that runs boxes of `ndrange`.

        It is the unchanged program where the kernel cannot notice that the launch is smaller.
        """
        if not needs_prelude(kernel.source):
            return self.whole_program(kernel)
        source = add_prelude(kernel.source, ndrange, source_name=kernel.source_name)
        return self._remember(
            (kernel.digest, repr(ndrange)),
            lambda: build_program(self.context, self.device, source, kernel.build_options),
        )

    def _remember(self, key: tuple[str, str], build: Callable[[], cl.Program]) -> cl.Program:
        program = self._programs.get(key)
        if program is None:
            program = build()
            self._programs[key] = program
            while len(self._programs) > _PROGRAMS_KEPT:
                self._programs.popitem(last=False)
        self._programs.move_to_end(key)
        return program


def open_session(description: DeviceDescription, device: cl.Device) -> DeviceSession:
    """Open a device with a context of its own, after a trial of its timer.

    Raises
    ------
    BrokenDeviceError
        If the device cannot build or run a kernel.
    """
    timer = try_device(description, device)
    return DeviceSession(description, cl.Context([device]), device, uses_event_timer=timer.agrees)
