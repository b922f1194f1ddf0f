"""Has a program's own objects sampled, in the program's own process."""

import threading
import time
from dataclasses import replace
from functools import partial

from kernelcast.launches.live import Launch, LiveLaunch
from kernelcast.launches.source_check import (
    list_parameters,
    refuse_overruns,
    refuse_persistent,
    tell_sizes,
)
from kernelcast.predictor.answering.measuring import run_estimate
from kernelcast.predictor.answering.processes import Executor, ReportProgress
from kernelcast.predictor.answering.tasks import EstimateOutcome, EstimateTask
from kernelcast.records.arguments import HeldBuffer
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.contention_meter import runs_besides
from kernelcast.sampling.discovery import describe_device
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.user_objects import (
    ArgumentPlace,
    check_objects,
    list_arguments,
    read_kernel,
    take_argument,
)

_WAITING = "waiting for the device; it is busy with other launches"


class LiveObjects(Executor):
    """Samples one launch where its buffers are; None where none is sampled."""

    def __init__(self, launch: LiveLaunch | None) -> None:
        self.launch = launch

    def sample(
        self, task: EstimateTask, *, timeout_s: float, report: ReportProgress
    ) -> EstimateOutcome:
        del timeout_s
        assert self.launch is not None
        session = self.launch.session
        if task.waits_for_device:
            report(_WAITING)
            while session.description.kind is DeviceKind.CPU and _are_drivers_busy():
                report(_WAITING)
            with session.lock:
                session.run_trial(1)
        return run_estimate(
            session,
            task,
            hold=self.launch.hold,
            report=report,
            check=partial(report, "running work-groups"),
        )


def _are_drivers_busy() -> bool:
    """Tell whether threads of drivers run for longer than one does that was just woken."""
    # Threads that have just ended a launch may spin for a while.
    for _ in range(3):
        if not runs_besides(thread.native_id for thread in threading.enumerate()):
            return False
        time.sleep(1e-3)
    return True


def sketch_live(launch: Launch) -> tuple[Problem, DeviceDescription]:
    """Describe a launch of live objects, and its device, by what is known without asking that."""
    check_objects(launch.kernel, launch.queue)
    device = launch.queue.device
    kernel = read_kernel(launch.kernel, device, source=launch.source, options=launch.build_options)
    refuse_persistent(kernel)
    parameters = list_parameters(kernel)
    given = list_arguments(launch.args)
    if parameters is None or len(parameters) != len(given):
        raise InputError(f"kernel {kernel.name}: its parameters are not known by its source")
    session = DeviceSession(describe_device(device), launch.queue.context, device)
    arguments = [
        ArgumentPlace(parameter, is_decisive=False).describe(
            session, take_argument(parameter, value)
        )
        for parameter, value in zip(tell_sizes(kernel, parameters), given, strict=True)
    ]
    # Their contents would be read by the device.
    arguments = [
        replace(one, read=None) if isinstance(one, HeldBuffer) else one for one in arguments
    ]
    local, offset = launch.local_size, launch.global_offset
    ndrange = NDRange(
        global_size=tuple(launch.global_size),
        local_size=None if local is None else tuple(local),
        global_offset=tuple(offset or ()),
    )
    refuse_overruns(kernel, ndrange, arguments)
    problem = Problem(name=kernel.name, kernel=kernel, ndrange=ndrange, arguments=tuple(arguments))
    return problem, session.description
