"""The microbenchmarks of instructions, synchronisation and launches."""

from functools import partial

from kernelcast.sampling.microbenchmarks import atomics, barriers, clock, divergence, launches
from kernelcast.sampling.microbenchmarks.benchmark import Benchmark
from kernelcast.sampling.microbenchmarks.instruction_kernels import KINDS
from kernelcast.sampling.microbenchmarks.rooflines import measure_instruction

COMPUTE: tuple[Benchmark, ...] = (
    *(
        Benchmark(
            name=f"instructions-{kind.name}",
            title=f"occupancy roofline, peak and latencies of {kind.name}",
            run=partial(measure_instruction, kind=kind),
        )
        for kind in KINDS
    ),
    Benchmark(name=clock.NAME, title="clock, where instructions tell it", run=clock.measure_clock),
    Benchmark(
        name=divergence.NAME,
        title="branches that neighbouring work-items do not share",
        run=divergence.measure_divergence,
    ),
    Benchmark(name=atomics.NAME, title="atomic additions", run=atomics.measure_atomics),
    Benchmark(name=barriers.NAME, title="barriers", run=barriers.measure_barriers),
    Benchmark(name=launches.DISPATCH, title="starting work-groups", run=launches.measure_dispatch),
    Benchmark(name=launches.LAUNCH, title="launching kernels", run=launches.measure_launch),
)
