"""A kernel's loops as compilers see them."""

import pytest

from kernelcast.features.counting.sampled_groups import choose_work_groups
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import summarise
from kernelcast.launches.modelling.launches import model_kernel
from kernelcast.records.arguments import BufferArgument, ElementType, ScalarArgument
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.tuning.nest import read_nest

BODIES = [
    "for (int i = 0; i < n; i++) for (int j = 0; j < 4; j++) a[i] += j;",
    "for (int i = 0; i < n; i++) for (int j = i; j < n; j++) a[i] += j;",
    "int x = get_local_id(0); for (int i = x; i < 9; i += 4) a[i] = 1; a[x] += n;",
    "if (get_local_id(0) < 3) a[0] = 1; for (int i = 0; i < 5; i++) a[i] += n;",
    "for (int i = 0; i < 3; i++) { if (a[i]) a[i + 1] = 2; a[i] = 1; }",
    "for (int i = 5; i < n - 9; i++) a[i] = 1; while (a[0] > n) a[0]--;",
    "if (get_global_id(0) >= 20) return; for (int i = 0; i < n / 0; i++) a[i] = 1;",
]


@pytest.mark.parametrize("body", BODIES)
def test_blocks_are_counted_as_by_enumeration(body: str) -> None:
    """Whether all work-items do the same or not, in work-groups of two sizes."""
    source = f"kernel void k(global int *a, int n) {{ {body} }}"
    ndrange = NDRange(global_size=(22,), local_size=(8,))
    ints = ElementType("int32")
    problem = Problem(
        name="k",
        kernel=Kernel(name="k", source=source),
        ndrange=ndrange,
        arguments=(
            BufferArgument(element=ints, count=64),
            ScalarArgument(element=ints, values=(7,)),
        ),
    )
    kernel = model_kernel(problem)
    groups = choose_work_groups(ndrange, 3)
    sample = count_statically(kernel.facts, ndrange, kernel.scalars, groups)
    expected = summarise(kernel.facts, sample, warp_widths=()).block_counts
    assert read_nest(kernel, ndrange).counts == pytest.approx(expected, rel=1e-12)
    assert any(expected)
