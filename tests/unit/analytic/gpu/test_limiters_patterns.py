import pytest

from kernelcast.analytic.gpu.machine import read_machine
from kernelcast.analytic.gpu.volumes import GpuVolumes, compute_volumes
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.machines import find_machine
from support.stencils import make_star

MACHINE = read_machine(find_machine("v100"))


def make_volumes(launch: ModelledLaunch) -> GpuVolumes:
    """Compute volumes on a V100."""
    return compute_volumes(launch, MACHINE)


def make_stencil(*local_size: int, reach: int = 4) -> ModelledLaunch:
    """Make the launch of a star stencil on 640 x 512 x 512 numbers."""
    return make_star(array=(640, 512, 512), radius=reach, local_size=local_size, registers=40)


@pytest.mark.parametrize(("x", "y", "z"), [(16, 1, 64), (2, 8, 64), (8, 8, 16), (64, 4, 4)])
def test_a_work_group_uses_a_page_for_each_layer(x: int, y: int, z: int) -> None:
    """Layers of 640 x 512 numbers are longer than a page: those that are loaded, those stored."""
    assert make_volumes(make_stencil(x, y, z)).group_pages == pytest.approx(2 * z + 8, abs=3)


@pytest.mark.parametrize(("local_size", "lines"), [((32, 8, 4), 2.94), ((16, 8, 8), 3.88)])
def test_rows_of_a_warp_touch_lines(local_size: tuple[int, ...], lines: float) -> None:
    """Counts 8 n - 8 bytes over lines of 128 more than one for each row, mean of alignments."""
    launch = make_stencil(*local_size)
    volumes = make_volumes(launch)
    per_request = volumes.l1.load_lines / volumes.l1.load_requests
    assert per_request == pytest.approx(lines, rel=0.03)
