"""Runs something elsewhere: one child process and one protocol, confined or free; clusters."""

from kernelcast.workers.deaths import COUNTING, WROTE
from kernelcast.workers.protocol import Message, MessageKind
from kernelcast.workers.running import run_isolated, stream_isolated
from kernelcast.workers.sandbox import Confinement
from kernelcast.workers.task import Reporter, Task
from kernelcast.workers.warm import WarmChildren

__all__ = [
    "COUNTING",
    "WROTE",
    "Confinement",
    "Message",
    "MessageKind",
    "Reporter",
    "Task",
    "WarmChildren",
    "run_isolated",
    "stream_isolated",
]
