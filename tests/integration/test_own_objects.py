"""Programs that hand over their own pyopencl objects, right and wrong."""

import os
import subprocess
import sys

import numpy as np
import pytest

import kernelcast
from kernelcast.records.errors import NDRangeError, PersistentKernelError, SignatureError
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

_SOURCE = """
typedef float real;
kernel void scale(global float *y, const float a, const real b, const float2 c)
{ y[get_global_id(0)] *= a * b * c.x; }
"""
_ITEMS, _LOCAL = 1 << 16, 64
_PAIR = cl.cltypes.make_float2(1, 2)


def _estimate(session: DeviceSession, *values: object, sizes: object = (_ITEMS,)) -> float:
    context, device = session.context, session.queue.device
    program = cl.Program(context, _SOURCE).build()
    y = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * _ITEMS)
    arguments = [y if value is ... else value for value in values]
    queue = cl.CommandQueue(context, device)
    return kernelcast.estimate(
        program.scale,
        sizes,  # type: ignore[arg-type] # wrong ones too
        (_LOCAL,),
        arguments,
        queue=queue,
    ).seconds


def test_numbers_of_the_kernels_types_are_taken(session: DeviceSession) -> None:
    """Scalars, of a type with a name of its own too, and vectors."""
    assert _estimate(session, ..., np.float32(2), np.float32(1), _PAIR) > 0


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ((..., np.int32(2), np.float32(1), _PAIR), r"\(float a\): int32 given; .*numpy.float32"),
        ((..., 2.5, np.float32(1), _PAIR), r"\(float a\): float given; give a numpy.float32"),
        ((..., ..., np.float32(1), _PAIR), r"\(float a\): Buffer given; give a numpy.float32"),
        ((np.zeros(4), np.float32(2), np.float32(1), _PAIR), "ndarray given; give a .*Buffer"),
        ((..., np.float32(2), np.float32(1), np.float32(1)), "float32 given; .*vector of 2"),
    ],
)
def test_other_values_are_refused(
    session: DeviceSession, values: tuple[object, ...], complaint: str
) -> None:
    """The driver would take their bytes for what they are not."""
    with pytest.raises(SignatureError, match=complaint):
        _estimate(session, *values)


@pytest.mark.parametrize("sizes", [_ITEMS, (0.5,), "many"])
def test_sizes_must_be_whole_numbers(session: DeviceSession, sizes: object) -> None:
    """A number alone is no sequence."""
    with pytest.raises(NDRangeError, match="sequence of whole numbers"):
        _estimate(session, ..., np.float32(2), np.float32(1), _PAIR, sizes=sizes)


def test_the_embedded_device_is_there_after_the_import() -> None:
    """A program that imports kernelcast first finds all devices that kernelcast finds."""
    program = "import kernelcast, pyopencl as cl; print(len(cl.get_platforms()))"
    environment = {name: value for name, value in os.environ.items() if name != "OCL_ICD_VENDORS"}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert int(found.stdout) == len(cl.get_platforms())


def test_a_kernel_that_fetches_its_work_is_refused(session: DeviceSession) -> None:
    """Its few sampled work-groups would do everybody's work: the launch is not run at all."""
    source = (
        "kernel void drain(volatile global int *head, global float *a, int n) {"
        " int i; while ((i = atomic_inc(head)) < n) a[i] *= 2; }"
    )
    program = cl.Program(session.context, source).build()
    head = cl.Buffer(session.context, cl.mem_flags.READ_WRITE, 4)
    a = cl.Buffer(session.context, cl.mem_flags.READ_WRITE, 4 * _ITEMS)
    queue = cl.CommandQueue(session.context, session.queue.device)
    with pytest.raises(PersistentKernelError, match="atomic_inc in line 1"):
        kernelcast.estimate(
            program.drain, (_ITEMS,), (_LOCAL,), [head, a, np.int32(_ITEMS)], queue=queue
        )
