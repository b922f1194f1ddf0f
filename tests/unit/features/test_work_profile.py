import pytest

from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.analysis import analyse
from kernelcast.features.counting.work_profile import may_differ, profile_work
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange

TRIANGLE = """
kernel void f(global float *a, int n)
{
    const int row = get_global_id(0);
    float sum = 0.0f;
    for (int j = 0; j < row; ++j)
        sum += a[j];
    a[n + row] = sum;
}
"""
EVEN = TRIANGLE.replace("j < row", "j < n")
DATA = TRIANGLE.replace("j < row", "j < (int)a[row]")
HALF = """
kernel void f(global float *a, int n)
{
    float sum = 0.0f;
    if (get_group_id(0) < 50)
        for (int j = 0; j < n; ++j)
            sum += a[j];
    a[get_global_id(0)] = sum;
}
"""
LAUNCH = NDRange(global_size=(6400,), local_size=(64,))


def read(source: str) -> KernelFacts:
    """Give what the source tells."""
    return analyse(Kernel(name="f", source=source)).facts


def box(start: int, groups: int) -> GroupBox:
    """Give work-groups one after the other."""
    return GroupBox(start=(start,), shape=(groups,))


@pytest.mark.parametrize(
    ("source", "expected"), [(TRIANGLE, True), (HALF, True), (EVEN, False), (DATA, False)]
)
def test_only_places_make_a_difference(source: str, expected: bool) -> None:
    """Loops that end by ids, and conditions on the work-group, differ between places."""
    assert may_differ(read(source)) is expected


def test_rows_of_a_triangle_weigh_by_their_length() -> None:
    """Work-group g of 100 has 64 g + 31.5 turns on average, all of them have 3199.5."""
    boxes = [box(0, 1), box(25, 1), box(99, 1), box(40, 20), box(0, 100)]
    profile = profile_work(read(TRIANGLE), LAUNCH, {"n": 6400}, boxes)
    assert profile is not None
    assert profile.is_exact
    turns = [31.5, 25 * 64 + 31.5, 99 * 64 + 31.5, 49.5 * 64 + 31.5, 3199.5]
    expected = [one / 3199.5 for one in turns]
    assert profile.weights == pytest.approx(expected, abs=0.01)
    assert profile.spread == pytest.approx(3**-0.5, rel=0.02)


def test_two_halves() -> None:
    """A condition on the work-group's number parts heavy places from light ones."""
    profile = profile_work(read(HALF), LAUNCH, {"n": 1000}, [box(10, 4), box(80, 4), box(48, 4)])
    assert profile is not None
    assert profile.weights == pytest.approx([2.0, 0.0, 1.0], abs=0.02)


def test_typical_work_groups_do_about_the_mean_work() -> None:
    """In a triangle those in the middle; of two halves the heavy one: the other does nothing."""
    triangle = profile_work(read(TRIANGLE), LAUNCH, {"n": 6400}, [])
    half = profile_work(read(HALF), LAUNCH, {"n": 1000}, [])
    assert triangle is not None
    assert half is not None
    assert triangle.typical_weight == pytest.approx(1.0, abs=0.1)
    assert 35 <= min(triangle.typical) < max(triangle.typical) <= 65
    assert half.typical_weight == pytest.approx(2.0, abs=0.02)
    assert max(half.typical) < 50
    assert max(half.typical) - min(half.typical) > 10


def test_few_heavy_work_groups_are_typical_of_all() -> None:
    """Where one in twenty does all the work, only those are worth a sample."""
    source = HALF.replace("get_group_id(0) < 50", "get_group_id(0) % 20 == 3")
    assert source != HALF
    profile = profile_work(read(source), LAUNCH, {"n": 1000}, [])
    assert profile is not None
    assert profile.typical == (3, 23, 43, 63, 83)
    assert profile.typical_weight == pytest.approx(20, rel=0.05)


def test_boxes_of_a_grid_weigh_by_their_rows() -> None:
    """In two dimensions a box is counted where it is, and large spaces by some work-groups."""
    source = TRIANGLE.replace("get_global_id(0)", "get_global_id(1)")
    launch = NDRange(global_size=(4096, 4096), local_size=(8, 8))
    boxes = [
        GroupBox(start=(100, 0), shape=(8, 8)),
        GroupBox(start=(0, 255), shape=(512, 2)),
        GroupBox(start=(300, 504), shape=(8, 8)),
    ]
    profile = profile_work(read(source), launch, {"n": 4096}, boxes)
    assert profile is not None
    assert profile.weights == pytest.approx([32 / 2048, 1.0, 4064 / 2048], abs=0.03)


def test_what_depends_on_data_is_not_exact() -> None:
    """A loop on data inside one on places is counted, as an assumption."""
    source = TRIANGLE.replace("sum += a[j];", "for (int k = 0; k < (int)a[j]; ++k) sum += k;")
    profile = profile_work(read(source), LAUNCH, {"n": 6400}, [box(0, 1), box(99, 1)])
    assert profile is not None
    assert not profile.is_exact
    assert profile.weights[0] < 0.1 < 1.9 < profile.weights[1]
