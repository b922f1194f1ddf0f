"""Runs C loops and times them: what the analytic CPU model predicts, measured."""

from kernelcast.sampling.loop_benchmark.measuring import (
    FLAGS,
    RUN,
    LoopMeasurement,
    LoopSampling,
    LoopToRun,
    compile_to_assembly,
    measure_loop,
)

__all__ = [
    "FLAGS", "RUN", "LoopMeasurement", "LoopSampling", "LoopToRun", "compile_to_assembly",
    "measure_loop",
]  # fmt: skip
