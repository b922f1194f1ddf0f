from contextlib import suppress
from pathlib import Path

import pytest

from kernelcast.records.errors import CompileError
from kernelcast.records.kernel import Kernel
from kernelcast.sampling.building import find_program, list_kernels
from kernelcast.sampling.session import DeviceSession, open_session

pytestmark = pytest.mark.device

SOURCE = """
kernel void one(global const float *a, global float *out, const int n) { out[0] = a[0] + n; }
kernel void two(local uint *shared, constant int4 *table) { shared[0] = table[0].x; }
"""


def reopen(session: DeviceSession, folder: Path) -> DeviceSession:
    """Open the device as another process would, with what is kept in a folder."""
    return open_session(session.description, session.device, folder, context=session.context)


def test_a_kept_program_has_the_kernels_and_signatures_that_it_was_built_with(
    session: DeviceSession, tmp_path: Path
) -> None:
    """Tells the second process all that the first was told, build time included."""
    kernels = [Kernel(name=name, source=SOURCE) for name in ("one", "two")]
    for kernel in kernels:
        first = reopen(session, tmp_path).whole_kernel(kernel)
        second_session = reopen(session, tmp_path)
        second = second_session.whole_kernel(kernel)
        assert second.parameters == first.parameters
        assert sorted(list_kernels(second.program)) == ["one", "two"]
        assert second_session.build_times_s[kernel.digest] > 0


def test_a_damaged_file_is_built_anew(session: DeviceSession, tmp_path: Path) -> None:
    """Never gives a driver what is not what it wrote."""
    given = tmp_path, session.context, session.device, SOURCE, ()
    find_program(*given)
    for path in tmp_path.glob("*.program"):
        path.write_bytes(path.read_bytes()[:-100] + bytes(100))
    program, *_ = find_program(*given)
    assert sorted(list_kernels(program)) == ["one", "two"]


def test_what_includes_files_is_not_kept(session: DeviceSession, tmp_path: Path) -> None:
    """Their contents are not part of what a program is found by."""
    for source, options in (
        ('#include "a.h"\n' + SOURCE, ()), (SOURCE, ("-I/somewhere",)), (SOURCE, ("-I", "/there")),
    ):  # fmt: skip
        with suppress(CompileError):  # the files are not there
            find_program(tmp_path, session.context, session.device, source, options)
        assert not [*tmp_path.iterdir()]
