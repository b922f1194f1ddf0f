"""Devices kept open, over which launches are balanced one after the other."""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

from kernelcast.balancing.conducting import Conductor
from kernelcast.balancing.course import Course, LaunchOrders
from kernelcast.balancing.crew import Crew, ProcessCrew
from kernelcast.balancing.gathering import Gathering
from kernelcast.balancing.host_arguments import HostArguments
from kernelcast.balancing.messages import Failed, Finish, Hint, Opened, Prepare
from kernelcast.balancing.reports import CourseTimes, make_report
from kernelcast.balancing.safety import choose_split
from kernelcast.balancing.settings import BalanceSettings, DevicePlace
from kernelcast.balancing.shared_memory import SharedMemory, as_bytes
from kernelcast.features.write_safety import SplitSafety
from kernelcast.launches.modelling.launches import choose_local_size
from kernelcast.launches.weighing import plan_by_source
from kernelcast.records.arguments import BufferArgument
from kernelcast.records.balance import BalanceReport, MergeRule
from kernelcast.records.errors import DeviceError, InputError, KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.plan import SamplingPlan


class MemoryCrew(Crew, Protocol):
    """A crew that shares memory with the host."""

    def send_memory(self, device: int, command: Prepare, memory: SharedMemory) -> None:
        """Give a device a command with new shared memory."""
        ...

    def close(self) -> None:
        """End all devices."""
        ...


class Balancer:
    """Devices that share launches.

    Parameters
    ----------
    places : sequence of DevicePlace
        The devices, ids in full, each at least once; all are opened at once.
    settings : BalanceSettings, optional
        How to balance.
    crew : MemoryCrew, optional
        Runs the work; child processes when left out.

    Examples
    --------
    >>> with Balancer([]) as balancer:  # doctest: +IGNORE_EXCEPTION_DETAIL
    ...     pass
    Traceback (most recent call last):
    InputError: no device is named; name at least one

    Notes
    -----
    A context manager; at its end the devices are closed. Used by one thread at a time. A device
    that has failed for good (crashed, hung, could not be opened) takes no part in later launches.
    """

    def __init__(
        self,
        places: Sequence[DevicePlace],
        settings: BalanceSettings | None = None,
        *,
        crew: MemoryCrew | None = None,
    ) -> None:
        if not places:
            msg = "no device is named; name at least one"
            raise InputError(msg)
        self._places = tuple(places)
        self._settings = settings or BalanceSettings()
        self._crew: MemoryCrew = crew or ProcessCrew(places, timeout_s=self._settings.timeout_s)
        self._outstanding = [1] * len(places)  # each says once that it is open
        self._names = [place.device_id for place in places]
        self._errors: dict[int, KernelcastError] = {}
        self._memory: SharedMemory | None = None
        self._has_memory = [False] * len(places)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the devices."""
        self._crew.close()
        if self._memory is not None:
            self._memory.close()
            self._memory = None

    def wait_open(self) -> None:
        """Wait until every device is open, or has failed to open, and idle."""
        while any(self._outstanding[n] for n in range(len(self._places)) if n not in self._errors):
            number, reply = self._crew.receive()
            if isinstance(reply, Hint):
                continue
            self._outstanding[number] -= 1
            if isinstance(reply, Failed):
                self._errors[number] = reply.error
            elif isinstance(reply, Opened):
                self._names[number] = reply.device

    def balance(
        self,
        kernel: Kernel,
        ndrange: NDRange,
        arguments: HostArguments,
        *,
        settings: BalanceSettings | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> BalanceReport:
        """Run a launch over the devices; the arrays among the arguments take the results.

        Parameters
        ----------
        kernel, ndrange, arguments
            The launch.
        settings : BalanceSettings, optional
            Used instead of the balancer's own.
        report : callable, optional
            Is told of each stage.

        Raises
        ------
        InputError
            If the launch may not be split, or no device takes it.
        DeviceError
            If no device is left to finish it. The arrays hold then what they held before.
        """
        started_s = time.monotonic()
        rules = settings or self._settings
        if rules.fixed_shares and len(rules.fixed_shares) != len(self._places):
            msg = f"{len(rules.fixed_shares)} shares given for {len(self._places)} devices"
            raise InputError(msg)
        chosen, notes = choose_local_size(ndrange)
        problem = Problem(
            name=kernel.name, kernel=kernel, ndrange=chosen, arguments=arguments.described
        )
        report("analysing the kernel")
        safety = choose_split(problem, rules, unit=max(place.concurrency for place in self._places))
        gathering = self._plan(problem, safety)
        arrays = {index: as_bytes(array) for index, array in arguments.buffers.items()}
        self.wait_open()
        if len(self._errors) == len(self._places):
            self._raise_errors()
        memory = self._share(gathering.size)
        gathering.put(memory, arrays)
        conductor = Conductor(
            self._crew,
            self._order(problem, arguments, gathering, safety),
            rules,
            self._list_devices(rules.fixed_shares),
            report,
        )
        try:
            course = conductor.run()
        finally:
            self._note(conductor.course)
        merging_s = self._crew.now_s()
        report("merging results")
        self._finish(gathering, arguments, memory, course)
        self._release()
        times = CourseTimes(started_s=started_s, merging_s=merging_s, ended_s=time.monotonic())
        errors = {n: one.error for n, one in enumerate(course.players) if one.error is not None}
        notes += tuple(
            f"{self._names[number]}: left out, too slow to be of use"
            for number, player in enumerate(course.players)
            if player.is_left_out
        )
        return make_report(
            problem, safety, course, times, self._places, self._names, notes, self._errors | errors
        )

    def _list_devices(self, fixed: Sequence[float]) -> list[int]:
        """Give the devices that take part."""
        return [
            number
            for number in range(len(self._places))
            if number not in self._errors and (not fixed or fixed[number] > 0)
        ]

    def _plan(self, problem: Problem, safety: SplitSafety) -> Gathering:
        """Lay out the buffers in shared memory."""
        name_of = _name_buffers(problem, safety)
        sizes = {
            index: one.bytes
            for index, one in enumerate(problem.arguments)
            if isinstance(one, BufferArgument)
        }
        return Gathering(
            sizes,
            {
                index: safety.footprints[name].spans
                for index, name in name_of.items()
                if safety.rules[name] is MergeRule.RANGES
            },
            [i for i, name in name_of.items() if safety.rules[name] is MergeRule.COMPARE],
            len(self._places),
        )

    def _share(self, size: int) -> SharedMemory:
        """Give shared memory of at least a size; what is there already is used again."""
        if self._memory is None or self._memory.size < size:
            if self._memory is not None:
                self._memory.close()
            self._memory = SharedMemory.make(size)
            self._has_memory = [False] * len(self._places)
        return self._memory

    def _order(
        self,
        problem: Problem,
        arguments: HostArguments,
        gathering: Gathering,
        safety: SplitSafety,
    ) -> LaunchOrders:
        in_place = _find_in_place(problem, safety)
        contents = tuple(
            gathering.places.get(index, value) for index, value in enumerate(arguments.values)
        )

        def prepare(device: int) -> None:
            memory = self._memory
            if memory is None:
                return
            is_new = not self._has_memory[device]
            command = Prepare(
                kernel=problem.kernel,
                ndrange=problem.ndrange,
                arguments=problem.arguments,
                contents=contents,  # type: ignore[arg-type] # arrays all have places
                memory_bytes=memory.size,
                is_new_memory=is_new,
                in_place=in_place,
            )
            if is_new:
                self._has_memory[device] = True
                self._crew.send_memory(device, command, memory)
            else:
                self._crew.send(device, command)

        return LaunchOrders(
            space=safety.space,
            prepare=prepare,
            collect=gathering.collect,
            result_bytes=gathering.result_bytes,
            is_known_even=_is_known_even(problem),
        )

    def _finish(
        self,
        gathering: Gathering,
        arguments: HostArguments,
        memory: SharedMemory,
        course: Course,
    ) -> None:
        """Merge, and only then write into the caller's arrays.

        Raises
        ------
        InputError
            If two devices have changed an element to different values.
        """
        arrays = arguments.buffers
        handed = [n for n, one in enumerate(course.players) if one.collected.any()]
        widths = {index: array.dtype.itemsize for index, array in arrays.items()}
        for index, conflicts in gathering.merge(memory, handed, widths).items():
            if conflicts:
                msg = (
                    f"argument {index}: {conflicts} elements were written by work-groups on "
                    "different devices, with different values: the result depends on their order. "
                    "The arrays are as they were; run the kernel on one device"
                )
                raise InputError(msg)
        gathering.take(memory, {i: as_bytes(array) for i, array in arrays.items()}, handed)

    def _note(self, course: Course) -> None:
        """Remember what is still to come from the devices, and which have failed."""
        for number, player in enumerate(course.players):
            self._outstanding[number] = player.outstanding
            if player.error is not None and player.is_gone:
                self._errors[number] = player.error

    def _release(self) -> None:
        """Have the devices drop their buffers; nobody waits for that."""
        for number in range(len(self._places)):
            if number not in self._errors:
                self._outstanding[number] += 1
                self._crew.send(number, Finish())

    def _raise_errors(self) -> None:
        errors = list(self._errors.values())
        if len(errors) == 1 or all(isinstance(one, InputError) for one in errors):
            raise errors[0]
        raise DeviceError("; ".join(str(one) for one in errors))


def _name_buffers(problem: Problem, safety: SplitSafety) -> dict[int, str]:
    """Give the buffers' names by position; rules are in the order of the arguments."""
    buffers = [
        index for index, one in enumerate(problem.arguments) if isinstance(one, BufferArgument)
    ]
    return dict(zip(buffers, safety.rules, strict=True))


def _find_in_place(problem: Problem, safety: SplitSafety) -> frozenset[int]:
    """Find the buffers of which no device needs a copy of its own.

    A buffer that is read and written does: where a device fails, another one repeats its part, and
    must find what was there before.
    """
    return frozenset(
        index
        for index, name in _name_buffers(problem, safety).items()
        if safety.rules[name] is MergeRule.READ or name in safety.unread
    )


def _is_known_even(problem: Problem) -> bool:
    plan = plan_by_source(SamplingPlan(), problem.kernel, problem.ndrange, problem.arguments)
    return plan.is_known_even and not plan.places
