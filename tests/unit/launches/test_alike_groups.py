import pytest

from kernelcast.launches.alike_groups import are_alike
from kernelcast.records.arguments import ElementType, LocalArgument, ScalarArgument
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange

GROUPS, LOCAL = 1000, 64
ARGUMENTS = (
    LocalArgument(bytes=0),
    ScalarArgument(element=ElementType("int32"), values=(GROUPS * LOCAL,)),
)


@pytest.mark.parametrize(
    ("body", "small", "whole"),
    [
        ("for (int k = get_local_id(0); k < n / 1000; k += 8) a[i] += a[k];", True, True),
        ("for (int s = 8; s > get_local_id(0); s /= 2) a[i] += a[s];", True, True),
        ("if (get_local_id(0) == 0 && i < n) a[i] = 0;", True, True),
        ("if (i < n / 2) a[i] = sqrt(a[i]);", True, False),
        ("for (int k = get_group_id(0); k < n; k++) a[i] += a[k];", False, False),
        ("if (a[i] > 0) a[i] = sqrt(a[i]);", None, None),
        ("if (n < 9 && a[i] > 0) a[i] = sqrt(a[i]);", False, False),
        ("for (int k = 0; k < a[i]; k++) a[i] += a[k];", None, None),
    ],
)
def test_what_work_groups_have_in_common_is_proven_for_each_size(
    body: str, *, small: bool | None, whole: bool | None
) -> None:
    """Places in a work-group may differ; places of work-groups and data that count may not."""
    source = f"kernel void f(global float *a, int n) {{ int i = get_global_id(0); {body} }}"
    kernel = Kernel(name="f", source=source)
    ndranges = [
        NDRange(global_size=(groups * LOCAL,), local_size=(LOCAL,)) for groups in (400, GROUPS)
    ]
    assert [are_alike(kernel, one, ARGUMENTS) for one in ndranges] == [small, whole]
