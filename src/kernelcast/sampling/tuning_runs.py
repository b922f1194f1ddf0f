"""Whole runs of many variants of one launch, which share their buffers."""

import time
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

from kernelcast.records.arguments import (
    Access,
    Argument,
    BufferArgument,
)
from kernelcast.records.problem import Problem
from kernelcast.sampling.building import build_kernel_source, take_kernel
from kernelcast.sampling.launch import enqueue, explained_errors
from kernelcast.sampling.launch_limits import check_launch
from kernelcast.sampling.local_size import choose_local_size
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.problems import put_argument, release_arguments
from kernelcast.sampling.scratch import KernelArgument
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.signature import check_arguments, infer_access

_SHARE_OF_MEMORY = 0.5


class SharedBuffers:
    """Buffers of one device by position and description, made when they are first asked for.

    Notes
    -----
    Those that were not used for longest go where all together would fill half of the device.
    """

    def __init__(self, session: DeviceSession, *, seed: int) -> None:
        self._session = session
        self._seed = seed
        self._kept: OrderedDict[tuple[int, BufferArgument], cl.Buffer] = OrderedDict()
        self._first: dict[tuple[int, BufferArgument], cl.Buffer] = {}
        self._most_bytes = _SHARE_OF_MEMORY * session.description.global_memory_bytes

    def give(self, index: int, argument: Argument) -> KernelArgument:
        """Give what a kernel is called with for one argument."""
        if not isinstance(argument, BufferArgument):
            return put_argument(self._session, index, argument, seed=self._seed)
        key = (index, argument)
        if key not in self._kept:
            self._make_room(argument.bytes)
            self._kept[key] = put_argument(self._session, index, argument, seed=self._seed)
        self._kept.move_to_end(key)
        return self._kept[key]

    def restore(self, index: int, argument: BufferArgument) -> None:
        """Give a buffer its first content again."""
        key = (index, argument)
        if key not in self._kept:
            return  # it will be made anew
        if key not in self._first:
            self._first[key] = put_argument(self._session, index, argument, seed=self._seed)
        cl.enqueue_copy(
            self._session.queue, self._kept[key], self._first[key], byte_count=argument.bytes
        )

    def release(self) -> None:
        """Give the memory back."""
        release_arguments(self._session, [*self._kept.values(), *self._first.values()])
        self._kept.clear()
        self._first.clear()

    def _make_room(self, wanted_bytes: int) -> None:
        held = sum(key[1].bytes for key in (*self._kept, *self._first))
        while self._kept and held + wanted_bytes > self._most_bytes:
            key, buffer = self._kept.popitem(last=False)
            self._session.queue.finish()
            for one in (buffer, self._first.pop(key, None)):
                if one is not None:
                    one.release()
                    held -= key[1].bytes


class TimedLaunch:
    """A launch that is built once and timed as a whole, as often as wanted."""

    def __init__(
        self,
        session: DeviceSession,
        problem: Problem,
        buffers: SharedBuffers,
        inferred: Sequence[Access | None],
    ) -> None:
        self._session = session
        self._problem = problem
        self._buffers = buffers
        program = build_kernel_source(session.context, session.device, problem.kernel)
        self._built = take_kernel(program, problem.kernel)
        compiled, parameters = self._built.kernel, self._built.parameters
        check_arguments(problem.kernel.name, parameters, problem.arguments)
        self._ndrange = choose_local_size(session, compiled, problem.ndrange)
        check_launch(session, compiled, problem.kernel, self._ndrange)
        self._restored = [
            (index, argument)
            for index, (parameter, argument, found) in enumerate(
                zip(parameters, problem.arguments, inferred, strict=True)
            )
            if isinstance(argument, BufferArgument)
            and infer_access(parameter, argument.access or found) is Access.READ_WRITE
        ]
        self._has_run = False
        self.cpu_s = 0.0
        """Time that all threads of this process spent during the last run, in seconds."""

    def run(self) -> float:
        """Run it as a whole and give its time in seconds.

        What it reads and writes has its first content each time: contents that grow from run to
        run would change the work.
        """
        session, kernel = self._session, self._built.kernel
        with explained_errors(self._problem.kernel, session.description):
            for index, argument in enumerate(self._problem.arguments):
                kernel.set_arg(index, self._buffers.give(index, argument))
            for index, argument in self._restored if self._has_run else ():
                self._buffers.restore(index, argument)
            self._has_run = True
            session.queue.finish()
            session.settle()
            used_s = time.process_time()
            seconds = session.timer.by_clock(partial(enqueue, session.queue, kernel, self._ndrange))
            self.cpu_s = time.process_time() - used_s
            session.note_busy()
        return seconds
