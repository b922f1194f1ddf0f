import pytest

from kernelcast.expressions.accesses import AccessKind
from kernelcast.features.generated_stencils import read_assignments
from kernelcast.records.errors import InputError

pystencils = pytest.importorskip("pystencils")


def test_takes_over_a_stencil() -> None:
    """Gives the interior as index space, offsets by the field's strides, and operations."""
    src, dst = pystencils.fields("src, dst: double[40, 30, 20]", layout="fzyx")
    update = pystencils.Assignment(dst.center, src[1, 0, 0] + src[-2, 0, 0] * src[0, 0, 1])
    kernel, ndrange = read_assignments([update], local_size=(8, 4, 1))
    assert ndrange.global_size == (36, 26, 16)
    assert ndrange.global_offset == (2, 2, 2)
    offsets = {one.text: str(one.offset_bytes) for one in kernel.accesses}
    cell = "8*global_id(0) + 320*global_id(1) + 9600*global_id(2)"
    assert offsets == {
        "src[1,0,0]": f"{cell} + 8", "src[-2,0,0]": f"{cell} - 16", "src[0,0,1]": f"{cell} + 9600",
        "dst[0,0,0]": cell,
    }  # fmt: skip
    assert [one.kind for one in kernel.accesses].count(AccessKind.STORE) == 1
    assert kernel.operations["fp64"] == 2


def test_dimension_0_is_the_contiguous_one() -> None:
    """Orders dimensions by strides, whatever the order of the field's coordinates."""
    src, dst = pystencils.fields("src, dst: float[3D]", layout="zyxf")
    kernel, ndrange = read_assignments(
        [pystencils.Assignment(dst.center, src[0, 0, 1])], sizes=(10, 20, 30), ghost_layers=0
    )
    assert ndrange.global_size in {(30, 20, 10), (10, 20, 30)}
    strides = {"global_id(0)": 4, "global_id(1)": 4 * ndrange.global_size[0]}
    text = str(kernel.accesses[-1].offset_bytes)
    assert text.startswith(f"4*global_id(0) + {strides['global_id(1)']}*global_id(1)")


def test_counts_values_of_a_cell() -> None:
    """Places the values of a cell by the stride of their index."""
    pdf, rho = pystencils.fields("pdf(3), rho: float[8, 8]", layout="fzyx")
    total = sum(pdf.center(index) for index in range(3))
    kernel, _ = read_assignments([pystencils.Assignment(rho.center, total)])
    constants = sorted(
        one.offset_bytes.constant_term for one in kernel.accesses if one.offset_bytes
    )
    assert constants == [0, 0, 256, 512]


def test_refuses_what_it_cannot_place() -> None:
    """Refuses fields of unknown size, and assignments that write nothing."""
    src, dst = pystencils.fields("src, dst: float[2D]")
    with pytest.raises(InputError, match="variable size"):
        read_assignments([pystencils.Assignment(dst.center, src.center)])
    with pytest.raises(InputError, match="no assignment writes"):
        read_assignments([])
