"""Runs C loops and times them: what the analytic CPU model predicts, measured."""

from kernelcast.sampling.loop_benchmark.measuring import (
    Effort,
    LoopMeasurement,
    LoopToRun,
    measure_loop,
)

__all__ = ["Effort", "LoopMeasurement", "LoopToRun", "measure_loop"]
