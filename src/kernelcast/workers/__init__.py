"""Runs something elsewhere: one child process and one protocol, confined or free; clusters."""

from kernelcast.workers.process import (
    SPARE,
    WROTE,
    WarmChildren,
    run_isolated,
    stream_isolated,
    take_result,
)
from kernelcast.workers.protocol import (
    BESIDE,
    BUILDING,
    COUNTING,
    Message,
    MessageKind,
    Reporter,
    Task,
)
from kernelcast.workers.sandbox import Confinement

__all__ = [
    "BESIDE",
    "BUILDING",
    "COUNTING",
    "SPARE",
    "WROTE",
    "Confinement",
    "Message",
    "MessageKind",
    "Reporter",
    "Task",
    "WarmChildren",
    "run_isolated",
    "stream_isolated",
    "take_result",
]
