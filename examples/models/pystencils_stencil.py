"""Asks the GPU model for a stencil that pystencils describes; no kernel is generated or run.

``python examples/models/pystencils_stencil.py a100`` needs ``pip install 'kernelcast[stencils]'``.
"""

import sys

import pystencils

from kernelcast.analytic.gpu.estimate import estimate_gpu
from kernelcast.features.generated_stencils import read_assignments
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.launches import model_written
from kernelcast.launches.modelling.sources import fold

REACH = 4


def make_update() -> list[pystencils.Assignment]:
    """Write the range-4 star stencil with 25 points, in double precision."""
    src, dst = pystencils.fields("src, dst: double[640, 512, 512]", layout="fzyx")
    points = [src.center]
    for axis in range(3):
        for distance in range(1, REACH + 1):
            for offset in (-distance, distance):
                place = tuple(offset if one == axis else 0 for one in range(3))
                points.append(src[place])
    return [pystencils.Assignment(dst.center, sum(points) / len(points))]


def main(machine_name: str) -> None:
    """Print time and limiter of two local sizes, with and without thread folding."""
    kernel, ndrange = read_assignments(make_update(), name="star", local_size=(64, 4, 4))
    machine = find_machine(machine_name)
    launch = model_written(kernel).launch(ndrange)
    for times in (1, 2):
        estimate = estimate_gpu(fold(launch, axis=2, times=times), machine)
        sys.stdout.write(
            f"{times} updates per work-item: {estimate.seconds * 1e3:.2f} ms, "
            f"limited by {estimate.limiter}\n"
        )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "a100")
