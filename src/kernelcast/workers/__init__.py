"""Runs something elsewhere: one child process and one protocol, confined or free; clusters."""

from kernelcast.workers.process import WROTE
from kernelcast.workers.protocol import Message, MessageKind, Reporter
from kernelcast.workers.running import run_isolated, stream_isolated, take_result
from kernelcast.workers.sandbox import Confinement
from kernelcast.workers.task import BESIDE, BUILDING, COUNTING, Task
from kernelcast.workers.warm import SPARE, WarmChildren

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
