import pytest

from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.executors import SAMPLE
from kernelcast.predictor.answering.tasks import EstimateOutcome, EstimateTask
from kernelcast.predictor.confinement import SandboxMode, choose_protection
from kernelcast.records.arguments import BufferArgument, ElementType
from kernelcast.records.errors import (
    CompileError,
    DeviceLimitError,
    EstimateTimeoutError,
    KernelRunError,
)
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.session import DeviceSession
from kernelcast.workers import Confinement, run_isolated

pytestmark = pytest.mark.device

PATIENCE_S = 240.0
ENDLESS = """
kernel void k(global volatile int *a)
{
    while (a[get_global_id(0)] >= 0)
        a[get_global_id(0)] = 1;
}
"""
WILD = """
kernel void k(global volatile int *a)
{
    for (long far = 1; far < 4096; ++far)
        a[get_global_id(0) + (far + (*a & 1)) * (1L << 30)] = 1;
}
"""
GOOD = "kernel void k(global volatile int *a) { a[get_global_id(0)] = 1; }"


def estimate(
    session: DeviceSession,
    source: str,
    timeout_s: float,
    confinement: Confinement | None = None,
) -> EstimateOutcome:
    """Estimate a kernel in a child process."""
    problem = Problem(
        name="k",
        kernel=Kernel(name="k", source=source),
        ndrange=NDRange(global_size=(32 * 256,), local_size=(32,)),
        arguments=(BufferArgument(element=ElementType("int32"), count=32 * 256),),
    )
    device_id = session.description.id
    task = EstimateTask(problem=problem, device_id=device_id, settings=EstimateSettings())
    return run_isolated(
        SAMPLE, task, timeout_s=timeout_s, subject=device_id, confinement=confinement
    )


def test_a_child_gives_an_estimate(session: DeviceSession) -> None:
    """Gives the estimate that a child process made on the device."""
    outcome = estimate(session, GOOD, PATIENCE_S)
    assert outcome.estimate.device_id == session.description.id
    assert outcome.estimate.seconds > 0


@pytest.mark.skipif(
    choose_protection(SandboxMode.AUTO).confinement is None, reason="no bubblewrap that works"
)
def test_a_confined_child_gives_an_estimate(session: DeviceSession) -> None:
    """The device answers as well in a process that sees next to nothing."""
    confinement = choose_protection(SandboxMode.AUTO).confinement
    outcome = estimate(session, GOOD, PATIENCE_S, confinement)
    assert outcome.estimate.device_id == session.description.id
    assert outcome.estimate.seconds > 0


def test_a_kernel_that_never_ends_is_stopped(session: DeviceSession) -> None:
    """Ends when its time is over where a kernel never ends, if the device does not end it."""
    try:
        outcome = estimate(session, ENDLESS, 4)
    except EstimateTimeoutError as error:
        complaint = str(error)
    else:  # Mesa's llvmpipe leaves any loop after 65,535 turns
        assert outcome.estimate.seconds > 0
        return
    assert complaint.startswith(f"{session.description.id}: no answer within 4 s (stage: ")


def test_a_kernel_that_writes_far_outside_harms_nobody(session: DeviceSession) -> None:
    """Survives a kernel that writes far outside its buffer: the child fails or answers."""
    try:
        outcome = estimate(session, WILD, PATIENCE_S)
    except KernelRunError as error:
        complaint = str(error)
    else:
        assert outcome.estimate.seconds > 0
        return
    assert complaint.startswith(session.description.id)
    assert "outside its buffers" in complaint or "could not be run" in complaint


def test_too_much_local_memory_is_a_limit(session: DeviceSession) -> None:
    """Refuses a kernel whose own local memory exceeds the device's before it runs."""
    count = session.description.local_memory_bytes
    source = f"""
kernel void k(global int *a)
{{
    local int tile[{count}];
    for (int j = get_local_id(0); j < {count}; j += 32)
        tile[j] = a[j & 1023];
    barrier(CLK_LOCAL_MEM_FENCE);
    a[get_global_id(0)] = tile[(a[get_global_id(0)] * 7919) & 1023];
}}
"""
    # in a child: a driver may abort the process
    with pytest.raises((DeviceLimitError, CompileError), match=r"local|shared"):
        estimate(session, source, PATIENCE_S)
