"""Objects of a caller that cannot be used, or not as they are."""

import contextlib
import gc
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyopencl.array as cl_array
import pytest

import kernelcast
from kernelcast.records.errors import InputError, NDRangeError, OverrunError, SignatureError
from kernelcast.records.estimates import Estimate
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

_SOURCE = """
kernel void add(global float *y, global const float *x, const int n, local float *t)
{
    const int i = get_global_id(0);
    if (i < n)
        y[i] += x[i];
}
"""
_ITEMS, _LOCAL = 1 << 15, 64
_FLAGS = cl.mem_flags.READ_WRITE


class Caller:
    """A program with a context, a queue and two buffers of ones."""

    def __init__(self, session: DeviceSession) -> None:
        self.context = session.context
        self.device = session.device
        self.queue = cl.CommandQueue(self.context, self.device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.program = cl.Program(self.context, _SOURCE).build()
        self.kernel = cl.Kernel(self.program, "add")
        self.y, self.x = self.make_buffer(), self.make_buffer()

    def make_buffer(self, count: int = _ITEMS) -> cl.Buffer:
        """Make a buffer of ones."""
        content = np.ones(count, dtype=np.float32)
        return cl.Buffer(self.context, _FLAGS | cl.mem_flags.COPY_HOST_PTR, hostbuf=content)

    def list_arguments(self, count: int = _ITEMS) -> list[Any]:
        """Give arguments that are right."""
        return [self.y, self.x, np.int32(count), cl.LocalMemory(4 * _LOCAL)]

    def estimate(
        self,
        arguments: Any = ...,  # noqa: ANN401 - wrong ones too
        *,
        items: int = _ITEMS,
        **given: Any,  # noqa: ANN401
    ) -> Estimate:
        """Ask for an estimate; anything may be given in the place of what is right."""
        known = {"queue": self.queue, "kernel": self.kernel, "local": (_LOCAL,)} | given
        return kernelcast.estimate(
            known.pop("kernel"),
            (items,),
            known.pop("local"),
            self.list_arguments() if arguments is ... else arguments,
            **known,
        )

    def read(self, buffer: cl.Buffer, count: int = _ITEMS) -> np.ndarray:
        """Read a buffer."""
        content = np.empty(count, dtype=np.float32)
        cl.enqueue_copy(self.queue, content, buffer)
        return content


@pytest.fixture
def caller(session: DeviceSession) -> Caller:
    """Give a program's objects."""
    return Caller(session)


def test_a_launch_that_provably_leaves_a_buffer_is_not_run(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sizes of the very buffers and the scalars decide; samples would end this process."""
    ran: list[object] = []
    monkeypatch.setattr(OpenCLLaunch, "time_boxes", lambda _, boxes: ran.append(boxes))
    items = 64 * _ITEMS
    with pytest.raises(OverrunError, match=r"line 6: y\[i\] leaves the buffer y.*131,072"):
        caller.estimate(caller.list_arguments(items), items=items)
    with pytest.raises(OverrunError, match="leaves the buffer x"):
        caller.estimate([caller.y, None, *caller.list_arguments()[2:]])
    part = caller.y.get_sub_region(0, 2 * _ITEMS)
    with pytest.raises(OverrunError, match="65,536"):
        caller.estimate([part, *caller.list_arguments()[1:]])
    assert ran == []


def test_a_guarded_launch_is_run(caller: Caller) -> None:
    """The same index space over the same buffers is right where the scalar says so."""
    assert caller.estimate(caller.list_arguments(), items=64 * _ITEMS).seconds > 0
    assert caller.estimate(caller.list_arguments(), local=None).seconds > 0


def test_a_program_from_a_binary_needs_its_source(caller: Caller) -> None:
    """Without it, the error names the argument to give; with it, there is an answer."""
    binaries = caller.program.get_info(cl.program_info.BINARIES)
    program = cl.Program(caller.context, [caller.device], binaries).build()  # type: ignore[arg-type]
    kernel = cl.Kernel(program, "add")
    with pytest.raises(InputError, match=r"holds no source.*source=\.\.\."):
        caller.estimate(kernel=kernel)
    assert caller.estimate(kernel=kernel, source=_SOURCE, build_options="").seconds > 0
    with pytest.raises(InputError, match="source: bytes given; give OpenCL C as a str"):
        caller.estimate(kernel=kernel, source=_SOURCE.encode())


def test_a_structure_of_another_size_is_refused(caller: Caller) -> None:
    """Some drivers would take it, and run with what lies behind."""
    program = cl.Program(
        caller.context,
        "typedef struct { float a; float4 b; } pair;"
        "kernel void shift(global float *y, pair p) { y[get_global_id(0)] += p.b.x; }",
    ).build()
    kernel = cl.Kernel(program, "shift")
    with pytest.raises(SignatureError, match=r"\(.*pair p\): 4 bytes given; give all 32"):
        caller.estimate([caller.y, np.zeros(1, "f4,")[0]], kernel=kernel)
    right = np.zeros((), [("a", "f4"), ("pad", "f4", 3), ("b", "f4", 4)])
    assert caller.estimate([caller.y, right[()]], kernel=kernel).seconds > 0


def test_a_queue_that_is_none_or_foreign_is_named(caller: Caller) -> None:
    """So is memory of another context."""
    with pytest.raises(InputError, match=r"queue: NoneType given; give a pyopencl\.CommandQueue"):
        caller.estimate(queue=None)
    with pytest.raises(InputError, match=r"queue: Context given"):
        caller.estimate(queue=caller.context)
    other = cl.Context([caller.device])
    queue = cl.CommandQueue(other, caller.device)
    with pytest.raises(InputError, match="the queue belongs to another context"):
        caller.estimate(queue=queue)
    foreign = cl.Buffer(other, _FLAGS, 4 * _ITEMS)
    with pytest.raises(InputError, match=r"argument 1 .*a Buffer of another context"):
        caller.estimate([caller.y, foreign, *caller.list_arguments()[2:]])


def test_a_kernel_that_is_none_is_named(caller: Caller) -> None:
    """A program, a path: the message says what to give."""
    for given in (caller.program, "examples/triad/triad.yaml", None):
        with pytest.raises(InputError, match=r"kernel: \w+ given; give a pyopencl\.Kernel"):
            caller.estimate(kernel=given)


def test_arrays_are_taken_by_their_buffers_and_offsets(caller: Caller) -> None:
    """Neither an array nor what lies beside a view in its buffer is changed."""
    whole = cl_array.to_device(caller.queue, np.ones(2 * _ITEMS, dtype=np.float32))
    view = whole[_ITEMS:]
    rest = caller.list_arguments()[2:]
    assert caller.estimate([view, cl_array.zeros_like(view), *rest]).seconds > 0
    assert (whole.get() == 1).all()
    with pytest.raises(OverrunError, match=r"leaves the buffer y.*131,068"):
        caller.estimate([whole[_ITEMS + 1 :].copy(), view, *rest])
    refusal = pytest.raises(SignatureError, match=r"byte 4 of its buffer.*array\.copy\(\)")
    begins_anywhere = "rusticl" in caller.device.platform.name
    with contextlib.nullcontext() if begins_anywhere else refusal:
        caller.estimate([whole[1:], view, *rest])


def test_arrays_of_a_memory_pool_are_taken(caller: Caller) -> None:
    """Their memory is a buffer under another name."""
    from pyopencl.tools import ImmediateAllocator, MemoryPool

    pool = MemoryPool(ImmediateAllocator(caller.queue))
    array = cl_array.zeros(caller.queue, _ITEMS, np.float32, allocator=pool)
    assert caller.estimate([array, caller.x, *caller.list_arguments()[2:]]).seconds > 0
    assert (array.get() == 0).all()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda right: right[:2], "2 arguments given, 4 expected"),
        (lambda right: [*right, np.int32(1)], "5 arguments given, 4 expected"),
        (lambda right: right[0], "arguments: Buffer given; give a sequence"),
        (lambda _: None, "arguments: NoneType given; give a sequence"),
        (lambda _: "buffer", "arguments: str given; give a sequence"),
        (lambda right: [*right[:3], None], "NoneType given; give a pyopencl.LocalMemory"),
        (lambda right: [*right[:3], right[0]], "Buffer given; give a pyopencl.LocalMemory"),
        (lambda right: [right[3], *right[1:]], "LocalMemory given; give a pyopencl.Buffer"),
        (lambda right: [[1.0], *right[1:]], "list given; give a pyopencl.Buffer"),
        (lambda right: [*right[:2], None, right[3]], "NoneType given; give a numpy.int32"),
        (lambda right: [*right[:2], 5, right[3]], "int given; give a numpy.int32"),
        (lambda right: [*right[:2], np.int64(5), right[3]], "int64 given; give a numpy.int32"),
        (lambda right: [*right[:2], np.float32(5), right[3]], "float32 given; .*numpy.int32"),
        (lambda right: [*right[:2], np.zeros(3), right[3]], "ndarray given; give a numpy.int32"),
    ],
)
def test_arguments_that_do_not_fit_are_named(
    caller: Caller, change: Callable[[Sequence[Any]], Any], complaint: str
) -> None:
    """What was given, what was expected and what to give, whatever was given."""
    with pytest.raises(SignatureError, match=complaint):
        caller.estimate(change(caller.list_arguments()))


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"budget": "much"}, InputError),
        ({"coverage": None}, InputError),
        ({"seed": -1}, InputError),
        ({"local": 64}, NDRangeError),
        ({"global_offset": np.array([0.5])}, NDRangeError),
    ],
)
def test_options_that_are_none_are_named(
    caller: Caller, options: dict[str, Any], kind: type[InputError]
) -> None:
    """Each with its own name."""
    with pytest.raises(kind, match=next(iter(options)).replace("_", " ")):
        caller.estimate(**options)


@pytest.mark.parametrize("is_released", [False, True])
def test_a_sub_buffer_outlives_its_parent(caller: Caller, is_released: bool) -> None:
    """Also where the driver does not know the parent any more; neither part is changed."""
    parent = caller.make_buffer(2 * _ITEMS)
    parts = [parent.get_sub_region(4 * _ITEMS * one, 4 * _ITEMS) for one in (0, 1)]
    if is_released:
        parent.release()
    del parent
    gc.collect()
    assert caller.estimate([*parts, *caller.list_arguments()[2:]]).seconds > 0
    assert all((caller.read(one) == 1).all() for one in parts)
