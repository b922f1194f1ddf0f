"""Runs C loops and times them: what the analytic CPU model predicts, measured."""

from kernelcast.sampling.loop_benchmark.measuring import (
    LoopMeasurement,
    LoopSampling,
    LoopToRun,
    measure_loop,
)

__all__ = ["LoopMeasurement", "LoopSampling", "LoopToRun", "measure_loop"]
