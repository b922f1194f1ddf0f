"""One device in a process of its own: takes commands, runs slabs, gives results back."""

import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from kernelcast.balancing.messages import (
    Collect,
    Collected,
    Command,
    Failed,
    Finish,
    Hint,
    Opened,
    Place,
    Prepare,
    Prepared,
    Ran,
    Reply,
    Run,
    Sample,
    Sampled,
)
from kernelcast.balancing.shared_memory import SharedMemory
from kernelcast.balancing.slab_sampling import SlabLaunch, sample_slabs
from kernelcast.records.errors import KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.sampling.partial_launch import Content, InPlace, PartialLaunch
from kernelcast.sampling.partial_launch_place import open_place
from kernelcast.sampling.session import DeviceSession


class Worker:
    """Answers commands on an open device.

    Parameters
    ----------
    session : DeviceSession
        The device.
    receive_memory : callable
        Takes the descriptor of new shared memory.
    is_interrupted : callable
        Tells whether another command waits: then no more samples are wanted.
    tell : callable
        Takes what is said without having been asked.
    """

    def __init__(
        self,
        session: DeviceSession,
        receive_memory: Callable[[], int],
        is_interrupted: Callable[[], bool] = lambda: False,
        tell: Callable[[Reply], None] = lambda _: None,
    ) -> None:
        self._session = session
        self._receive_memory = receive_memory
        self._is_interrupted = is_interrupted
        self._tell = tell
        self._memory: SharedMemory | None = None
        self._launch: PartialLaunch | None = None
        self._kernel: Kernel | None = None

    def answer(self, command: Command) -> Reply:
        """Do what a command says.

        Raises
        ------
        KernelcastError
            If it cannot be done.
        """
        start_s = time.monotonic()
        match command:
            case Prepare():
                return self._prepare(command, start_s)
            case Sample():
                return self._sample(command, start_s)
            case Run():
                self._started.run([command.space.box(span) for span in command.spans])
                return Ran(start_s=start_s, end_s=time.monotonic(), spans=command.spans)
            case Collect():
                for index, spans in command.spans.items():
                    self._started.read(index, spans, self._view(command.targets[index]))
                return Collected(start_s=start_s, end_s=time.monotonic())
            case Finish():
                self._drop()
                return Reply(start_s=start_s, end_s=time.monotonic())

    @property
    def _started(self) -> PartialLaunch:
        if self._launch is None:
            msg = "nothing is prepared"
            raise KernelcastError(msg)
        return self._launch

    def _view(self, place: Place) -> Any:  # noqa: ANN401 - bytes of the shared memory
        if self._memory is None:
            msg = "there is no shared memory"
            raise KernelcastError(msg)
        return self._memory.view(place)

    def _prepare(self, command: Prepare, start_s: float) -> Prepared:
        self._drop()
        if command.is_new_memory:
            if self._memory is not None:
                self._memory.close()
            self._memory = SharedMemory(self._receive_memory(), command.memory_bytes)
        contents = [self._take(command, index) for index in range(len(command.contents))]
        self._kernel = command.kernel
        self._launch = PartialLaunch(
            self._session, command.kernel, command.ndrange, command.arguments, contents
        )
        return Prepared(
            start_s=start_s,
            end_s=time.monotonic(),
            ndrange=self._launch.ndrange,
            build_s=self._launch.build_s,
            upload_s=self._launch.upload_s,
            uploaded_bytes=self._launch.uploaded_bytes,
            in_place=self._launch.in_place,
        )

    def _take(self, command: Prepare, index: int) -> Content:
        """Give what an argument holds."""
        one = command.contents[index]
        if not isinstance(one, Place):
            return one
        view = self._view(one)
        return InPlace(array=view) if index in command.in_place else view

    def _sample(self, command: Sample, start_s: float) -> Sampled:
        launch = self._started
        slabs = SlabLaunch(
            launch=launch,
            space=command.space,
            device=self._session.description,
            kernel_digest="" if self._kernel is None else self._kernel.digest,
            is_stopped=self._is_interrupted,
            tell=lambda rate: self._tell(Hint(start_s=start_s, end_s=time.monotonic(), rate=rate)),
        )
        found = sample_slabs(slabs, command)
        interval = found.interval
        return Sampled(
            start_s=start_s,
            end_s=time.monotonic(),
            spans=found.spans,
            seconds=None if interval is None else interval.seconds,
            low_s=None if interval is None else interval.low,
            high_s=None if interval is None else interval.high,
            rates=found.rates,
            is_even=found.is_even,
        )

    def _drop(self) -> None:
        if self._launch is not None:
            self._launch.release()
            self._launch = None


def serve(
    channel: Connection,
    receive_memory: Callable[[], int],
    device_id: str,
    compute_units: int | None,
) -> None:
    """Open a device and answer commands until the host closes the channel or something fails."""
    start_s = time.monotonic()
    try:
        session = open_place(device_id, compute_units)
        opened = session.description
        channel.send(
            Opened(start_s=start_s, end_s=time.monotonic(), device_id=opened.id, device=opened.name)
        )
        _answer_all(channel, Worker(session, receive_memory, channel.poll, channel.send))
    except EOFError:
        return
    except KernelcastError as error:
        channel.send(_describe_failure(error, start_s))
    except Exception:  # noqa: BLE001 - a bug of ours must be told apart from a driver's crash
        msg = f"{device_id}: kernelcast failed; please report:\n{traceback.format_exc()}"
        channel.send(_describe_failure(KernelcastError(msg), start_s))


def _answer_all(channel: Connection, worker: Worker) -> None:
    """Answer until the channel ends; a launch that cannot be prepared does not end it."""
    while True:
        command = channel.recv()
        start_s = time.monotonic()
        try:
            reply = worker.answer(command)
        except KernelcastError as error:
            if not isinstance(command, Prepare):
                raise
            reply = _describe_failure(error, start_s, is_final=False)
        channel.send(reply)


def _describe_failure(error: KernelcastError, start_s: float, *, is_final: bool = True) -> Failed:
    return Failed(start_s=start_s, end_s=time.monotonic(), error=error, is_final=is_final)
