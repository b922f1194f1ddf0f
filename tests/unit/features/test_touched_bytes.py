"""How many bytes a launch touches at least, against closed forms."""

import pytest

from kernelcast.features.analysis import analyse
from kernelcast.features.counting.touched_bytes import count_touched_bytes
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange

N = 1 << 16


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a[i] = b[i];", 8 * N),
        ("if (i < n) a[i] = b[i];", 8 * N),
        ("if (i < n / 2) a[i] = 1;", 2 * N),
        ("a[i] = b[0];", 4 * N + 4),
        ("a[i] = a[i] + 1;", 4 * N),
        ("a[(int)b[i]] = 1;", 4 * N),
        ("float s = 0; for (int k = 0; k < n; k++) s += b[k]; a[i] = s;", 4 * N + 4),
        ("if (n < 0) a[i] = 1;", 0),
    ],
)
def test_counts_what_the_source_proves(body: str, expected: float) -> None:
    """Each byte once; what depends on data, and iterations but the first, count as nothing."""
    head = "kernel void f(global float *a, global const float *b, int n)"
    source = f"{head} {{ int i = get_global_id(0); {body} }}"
    facts = analyse(Kernel(name="f", source=source)).facts
    sizes = {"a": 4 * N, "b": 4 * N}
    launch = NDRange(global_size=(N,), local_size=(64,))
    found = count_touched_bytes(facts, launch, {"n": N}, sizes)
    assert found == pytest.approx(expected, rel=0.05, abs=4 * 64 * 16)


def test_what_work_groups_share_counts_once() -> None:
    """Rows that all work-groups of a line read are no more than the buffer has."""
    source = (
        "kernel void f(global float *a, global const float *b) {"
        " a[get_global_id(1) * get_global_size(0) + get_global_id(0)] = b[get_global_id(0)]; }"
    )
    facts = analyse(Kernel(name="f", source=source)).facts
    launch = NDRange(global_size=(256, 256), local_size=(16, 16))
    found = count_touched_bytes(facts, launch, {}, {"a": 4 * N, "b": 4 * 256})
    assert 4 * N <= found <= 4 * N + 4 * 256
