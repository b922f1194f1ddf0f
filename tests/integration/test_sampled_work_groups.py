import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kernelcast.records.arguments import Access
from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.sampling.compiler_facts import check_launch
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.scratch import ScratchArguments
from kernelcast.sampling.session import DeviceSession
from support import strategies
from support.device_queues import put, read

pytestmark = pytest.mark.device

# Entries are found by get_global_id and arguments alone, so that a wrong answer of any other
# function shows in an entry and not in its place.
SOURCE = """
kernel void record(global uint *out, ulong4 size, ulong4 offset)
{
    size_t at = ((get_global_id(2) - offset.z) * size.y + get_global_id(1) - offset.y) * size.x
        + get_global_id(0) - offset.x;
    global uint *entry = out + at * FIELDS;
    for (uint d = 0; d < 3; ++d) {
        entry[d] = get_global_id(d);
        entry[3 + d] = get_local_id(d);
        entry[6 + d] = get_group_id(d);
        entry[9 + d] = get_num_groups(d);
        entry[12 + d] = get_global_size(d);
        entry[15 + d] = get_global_offset(d);
        entry[18 + d] = get_local_size(d);
    }
    entry[21] = get_work_dim();
    entry[22] = get_group_id(0) + get_num_groups(0) * get_group_id(1);
#ifdef HAS_LINEAR_ID
    entry[23] = get_global_linear_id();
#else
    entry[23] = at;
#endif
}
"""
FIELDS = 24
SENTINEL = 0xDEADBEEF
Entries = npt.NDArray[np.uint32]


def newest_standard(session: DeviceSession) -> tuple[str, ...]:
    """Give options that select the newest OpenCL C the device knows, if it is newer than 1.2."""
    try:
        known = {
            (one.version >> 22, (one.version >> 12) & 0x3FF)
            for one in session.device.opencl_c_all_versions
        }
    except (AttributeError, cl.Error):  # before OpenCL 3.0
        words = session.device.opencl_c_version.split()[2].split(".")
        known = {(int(words[0]), int(words[1]))}
    newest = max(known)
    if newest < (2, 0):
        return ()
    return (f"-cl-std=CL{newest[0]}.{newest[1]}", "-DHAS_LINEAR_ID")


def is_sampled(ndrange: NDRange, boxes: tuple[GroupBox, ...]) -> npt.NDArray[np.bool_]:
    """Tell which work-items lie in the boxes, in order of their linear ids."""
    inside = np.zeros(ndrange.global_size[::-1], dtype=bool)
    for box in boxes:
        where = [
            slice(first * local, (first + extent) * local)
            for first, extent, local in zip(
                box.start, box.shape, ndrange.known_local_size, strict=True
            )
        ]
        inside[tuple(reversed(where))] = True
    return inside.ravel()


def compare(
    session: DeviceSession,
    kernel: Kernel,
    ndrange: NDRange,
    boxes: tuple[GroupBox, ...],
    *more: object,
    fields: int = 1,
) -> Entries:
    """Sample boxes and run the whole launch, which must agree where work-items were sampled.

    Elsewhere nothing is written, in the user's buffer nothing at all. Gives what the whole wrote.
    """
    before = np.full((ndrange.work_item_count, fields), SENTINEL, dtype=np.uint32)
    user = put(session.queue, before)
    accesses = [Access.READ_WRITE, *(None for _ in more)]
    check_launch(session, session.whole_kernel(kernel).kernel, kernel, ndrange)
    copies = ScratchArguments(session.buffers, [user, *more], accesses)
    with OpenCLLaunch(session, kernel, ndrange, copies) as launch:
        copy = launch.scratch.arguments[0]
        assert len(launch.time_boxes(boxes)) == len(boxes)
        sampled = read(session.queue, copy, before)
        launch.time_whole()
        whole = read(session.queue, copy, before)
    inside = is_sampled(ndrange, boxes)
    assert np.array_equal(sampled[inside], whole[inside])
    assert (sampled[~inside] == SENTINEL).all()
    assert (whole != SENTINEL).all()
    assert np.array_equal(read(session.queue, user, before), before)
    user.release()
    return whole


def check(session: DeviceSession, ndrange: NDRange, boxes: tuple[GroupBox, ...]) -> None:
    """Compare what every work-item is told of itself and of the launch."""
    kernel = Kernel(
        name="record", source=SOURCE,
        build_options=(*newest_standard(session), f"-DFIELDS={FIELDS}"),
    )  # fmt: skip
    size, offset = np.ones(4, np.uint64), np.zeros(4, np.uint64)
    size[: ndrange.dimensions], offset[: ndrange.dimensions] = (
        ndrange.global_size, ndrange.global_offset,
    )  # fmt: skip
    whole = compare(session, kernel, ndrange, boxes, size, offset, fields=FIELDS)
    assert np.array_equal(whole[:, 23], np.arange(ndrange.work_item_count))
    assert len(np.unique(whole[:, 6:9], axis=0)) == ndrange.work_group_count


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,  # each index space costs a compilation
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@pytest.mark.parametrize("uniform", [True, False])
@given(data=st.data())
def test_samples_are_the_work_groups_asked_for(
    session: DeviceSession, data: st.DataObject, *, uniform: bool
) -> None:
    """Each computes what it does in the whole launch; uneven spaces are refused where they must."""
    ndrange = data.draw(strategies.ndranges(max_groups=6, max_local=3, uniform=uniform))
    is_taken = session.description.has_non_uniform_work_groups and newest_standard(session)
    if uniform or is_taken:
        check(session, ndrange, data.draw(strategies.disjoint_boxes(ndrange)))
        return
    with pytest.raises(DeviceLimitError, match=r"does not divide .*; pad the global size to \d+"):
        check(session, ndrange, ())


@pytest.mark.parametrize(
    ("ndrange", "boxes"),
    [
        (NDRange(global_size=(24, 10), local_size=(4, 2), global_offset=(0, 3)),
         (GroupBox(start=(1, 1), shape=(3, 2)), GroupBox(start=(5, 4), shape=(1, 1)))),
        (NDRange(global_size=(6, 6, 6), local_size=(2, 3, 1), global_offset=(1, 2, 3)),
         (GroupBox(start=(2, 1, 5), shape=(1, 1, 1)), GroupBox(start=(0, 0, 1), shape=(2, 2, 3)))),
        (NDRange(global_size=(7 * 8,), local_size=(8,), global_offset=(2**20 + 5,)),
         (GroupBox(start=(6,), shape=(1,)), GroupBox(start=(0,), shape=(2,)))),
        (NDRange(global_size=(2**17,), local_size=(8,)),
         (GroupBox(start=(2**14 - 3,), shape=(3,)), GroupBox(start=(0,), shape=(2,)))),
    ],
    ids=["2-D", "3-D", "far offset", "far work-groups"],
)  # fmt: skip
def test_samples_at_the_edges(
    session: DeviceSession, ndrange: NDRange, boxes: tuple[GroupBox, ...]
) -> None:
    """Runs exactly the work-groups asked for at the last corner and along every dimension."""
    check(session, ndrange, boxes)


HELPERS = """
#define ROW get_group_id(1)
uint columns(void);
uint place(uint row) { return row * columns() + get_group_id(0); }
uint columns(void) { return get_num_groups(0); }
kernel void plain(global uint *out) { out[get_global_id(0)] = 7; }
kernel __attribute__((reqd_work_group_size(4, 2, 1)))
void k(global uint *out) {
    uint at = get_global_id(1) * get_global_size(0) + get_global_id(0);
    out[at] = place(ROW) + 1000 * (uint)get_global_size(1);
}
"""


def test_functions_are_told_too(session: DeviceSession) -> None:
    """Computes in a sample what the whole does where functions ask, and are declared before."""
    ndrange = NDRange(global_size=(96, 80), local_size=(4, 2))
    kernel = Kernel(name="k", source=HELPERS)
    assert session.window_kernel(kernel, ndrange).hidden_from == 1
    whole = compare(session, kernel, ndrange, (GroupBox(start=(5, 8), shape=(3, 7)),))
    assert len(np.unique(whole)) == ndrange.work_group_count


def test_other_sizes_and_kernels_are_built_already(session: DeviceSession) -> None:
    """Builds one program for all sizes and kernels of a source, none for those that never ask."""
    sizes = (NDRange(global_size=(96, n), local_size=(4, 2)) for n in (80, 160))
    windows = [session.window_kernel(Kernel(name="k", source=HELPERS), one) for one in sizes]
    assert windows[0].program is windows[1].program
    plain = Kernel(name="plain", source=HELPERS)
    ndrange = NDRange(global_size=(64,), local_size=(4,))
    assert session.window_kernel(plain, ndrange) is session.whole_kernel(plain)
    source = HELPERS + "kernel void other(global uint *out) { out[0] = get_num_groups(0); }"
    both = [
        session.window_kernel(Kernel(name=one, source=source), ndrange) for one in ("k", "other")
    ]
    assert both[0].program is both[1].program


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("out[at] = NUMBER(0);", ("-DNUMBER=get_group_id",)),
        ("out[at] = NUMBER;", ("-DNUMBER=get_global_id(0)/get_num_groups(0)",)),
        ("uint d = 0; out[at] = get_group_id(d++) + 100 * d;", ()),
        ("out[at] = get_num_groups(get_global_id(0) - get_global_id(0));", ()),
        ("uint kc = 0; out[at] = get_group_id(d * kc);", ("-Dd=2", "-Da=b")),
        ("size_t (get_it)[1] = { get_group_id(0) }; out[at] = get_it[0];", ()),
    ],
    ids=["name in an option", "call in an option", "side effect", "computed dimension",
         "short names taken", "in an initialiser"],
)  # fmt: skip
def test_hidden_uses_see_the_whole_launch(
    session: DeviceSession, source: str, options: tuple[str, ...]
) -> None:
    """Computes in a sample what the whole launch computes, however a function is named."""
    source = f"kernel void k(global uint *out) {{ size_t at = get_global_id(0) - 6; {source} }}"
    kernel = Kernel(name="k", source=source, build_options=options)
    ndrange = NDRange(global_size=(64,), local_size=(4,), global_offset=(6,))
    compare(session, kernel, ndrange, (GroupBox(start=(5,), shape=(3,)),))


def test_dimensions_beyond_the_third(session: DeviceSession) -> None:
    """Gives OpenCL's fixed answers in a sample, where some drivers crash on such a dimension."""
    ndrange = NDRange(global_size=(64,), local_size=(4,), global_offset=(2,))
    functions = ("get_group_id", "get_num_groups", "get_global_size", "get_global_offset")
    answers = ", ".join(f"{name}(zero + {axis})" for axis in (3, 7) for name in functions)
    source = f"""kernel void k(global ulong8 *out) {{
        uint zero = get_global_id(0) - get_global_id(0);
        out[get_global_id(0) - 2] = (ulong8)({answers}); }}"""
    user = cl.Buffer(session.context, cl.mem_flags.READ_WRITE, size=64 * 64)
    kernel = Kernel(name="k", source=source)
    copies = ScratchArguments(session.buffers, [user], [Access.READ_WRITE])
    with OpenCLLaunch(session, kernel, ndrange, copies) as launch:
        launch.time_boxes([GroupBox(start=(5,), shape=(3,))])
        out = read(session.queue, launch.scratch.arguments[0], np.empty((64, 8), np.uint64))
    assert (out[20:32] == [0, 1, 1, 0] * 2).all()
