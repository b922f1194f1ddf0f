"""Devices kept open, over which launches are balanced one after the other."""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from kernelcast.balancing.device_processes import DeviceProcesses, Devices
from kernelcast.balancing.device_state import Execution, SplitLaunch, join_errors
from kernelcast.balancing.host_arguments import HostArguments, read_host_arguments
from kernelcast.balancing.launch_buffers import LaunchBuffers
from kernelcast.balancing.messages import Failed, Finish, Opened, Prepare
from kernelcast.balancing.places import choose_places
from kernelcast.balancing.reports import make_report
from kernelcast.balancing.scheduler import Scheduler
from kernelcast.balancing.settings import BalanceSettings, DevicePlace
from kernelcast.balancing.shared_memory import SharedMemory, as_bytes
from kernelcast.balancing.splitting import choose_split
from kernelcast.features.write_safety import SplitSafety
from kernelcast.launches.modelling.launches import choose_local_size
from kernelcast.launches.weighing import plan_by_source
from kernelcast.records.arguments import BufferArgument
from kernelcast.records.balance import BalanceReport, MergeRule
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.plan import SamplingPlan

if TYPE_CHECKING:  # pyopencl is loaded where it is needed
    from kernelcast.launches.live import Launch


class Balancer:
    """Devices that share launches.

    Parameters
    ----------
    devices : sequence of str or DevicePlace
        Ids or beginnings of ids; all devices when left out. They are opened at once.
    settings : BalanceSettings, optional
        How to balance.
    processes : Devices, optional
        Run the work, one for each place; child processes when left out.

    Examples
    --------
    >>> source = "kernel void twice(global int *a) { a[get_global_id(0)] *= 2; }"
    >>> with Balancer() as balancer:  # doctest: +SKIP
    ...     for array in arrays:
    ...         balancer.balance(Kernel(name="twice", source=source), array.shape, [array])

    Notes
    -----
    A context manager; at its end the devices are closed. Used by one thread at a time. A device
    that has failed for good (crashed, hung, could not be opened) takes no part in later launches.
    """

    def __init__(
        self,
        devices: Sequence[str | DevicePlace] = (),
        settings: BalanceSettings | None = None,
        *,
        processes: Devices | None = None,
    ) -> None:
        places = [DevicePlace(device_id=d) if isinstance(d, str) else d for d in devices]
        self._places = places = places if processes else choose_places(places)
        self._settings = settings or BalanceSettings()
        self._devices: Devices = processes or DeviceProcesses(
            places, timeout_s=self._settings.timeout_s
        )
        self._outstanding = [1] * len(places)  # each says once that it is open
        self._names = [place.device_id for place in places]
        self._errors: dict[int, KernelcastError] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the devices."""
        self._devices.close()

    def wait_open(self) -> None:
        """Wait until every device is open, or has failed to open, and idle."""
        while any(self._outstanding[n] for n in range(len(self._places)) if n not in self._errors):
            number, reply = self._devices.receive()
            self._outstanding[number] -= 1
            if isinstance(reply, Failed):
                self._errors[number] = reply.error
            elif isinstance(reply, Opened):
                self._names[number] = reply.device

    def balance(
        self,
        kernel: "Kernel | Launch",
        ndrange: NDRange | Sequence[int] = (),
        args: Sequence[Any] | HostArguments = (),
        *,
        settings: BalanceSettings | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> BalanceReport:
        """Run a launch over the devices; arrays and buffers among the arguments take the results.

        Parameters
        ----------
        kernel, ndrange, args
            As of `balance`.
        settings : BalanceSettings, optional
            Used instead of the balancer's own.

        Raises
        ------
        InputError
            If the launch may not be split, or no device takes it.
        DeviceError
            If no device is left to finish it. The arrays hold then what they held before.
        """
        write_back: Callable[[Iterable[int]], None] | None = None
        if not isinstance(args, HostArguments):
            if "pyopencl" in sys.modules:  # without which there are no objects of it
                from kernelcast.balancing.live_arguments import copy_launch

                kernel, ndrange, args, write_back = copy_launch(kernel, ndrange, args)
            else:
                args = read_host_arguments(args)
        if not isinstance(kernel, Kernel):
            msg = f"kernel: {type(kernel).__name__} given; give a kernelcast.Kernel or a Launch"
            raise InputError(msg)
        space = ndrange if isinstance(ndrange, NDRange) else NDRange(global_size=tuple(ndrange))
        found = self._balance(kernel, space, args, settings or self._settings, report)
        if write_back is not None:
            rules = zip(args.buffers, found.merges.values(), strict=True)
            write_back(index for index, rule in rules if rule is not MergeRule.READ)
        return found

    def _balance(
        self,
        kernel: Kernel,
        ndrange: NDRange,
        arguments: HostArguments,
        rules: BalanceSettings,
        report: Callable[[str], None],
    ) -> BalanceReport:
        started_s = time.monotonic()
        if rules.fixed_shares and len(rules.fixed_shares) != len(self._places):
            msg = f"{len(rules.fixed_shares)} shares given for {len(self._places)} devices"
            raise InputError(msg)
        chosen, notes = choose_local_size(ndrange)
        problem = Problem(
            name=kernel.name, kernel=kernel, ndrange=chosen, arguments=arguments.described
        )
        report("analysing the kernel")
        safety = choose_split(problem, rules, unit=max(place.concurrency for place in self._places))
        buffers = self._plan(problem, safety)
        arrays = {index: as_bytes(array) for index, array in arguments.buffers.items()}
        self.wait_open()
        if len(self._errors) == len(self._places):
            raise join_errors(list(self._errors.values()))
        memory = self._devices.memory
        memory.grow(buffers.size)
        buffers.put(memory, arrays)
        scheduler = Scheduler(
            self._devices,
            self._describe(problem, arguments, buffers, safety),
            rules,
            self._list_devices(rules.fixed_shares),
            report,
        )
        try:
            execution = scheduler.run()
        finally:
            self._note(scheduler.execution)
        execution.started_s, execution.merging_s = started_s, self._devices.now_s()
        report("merging results")
        self._finish(buffers, arguments, memory, execution)
        self._release()
        execution.ended_s = time.monotonic()
        return make_report(
            kernel.name, safety, execution, self._places, self._names, notes, self._errors
        )

    def _list_devices(self, fixed: Sequence[float]) -> list[int]:
        """Give the devices that take part."""
        return [
            number
            for number in range(len(self._places))
            if number not in self._errors and (not fixed or fixed[number] > 0)
        ]

    def _plan(self, problem: Problem, safety: SplitSafety) -> LaunchBuffers:
        """Lay out the buffers in shared memory."""
        name_of = _name_buffers(problem, safety)
        sizes = {
            index: one.bytes
            for index, one in enumerate(problem.arguments)
            if isinstance(one, BufferArgument)
        }
        return LaunchBuffers(
            sizes,
            {
                index: safety.footprints[name].spans
                for index, name in name_of.items()
                if safety.rules[name] is MergeRule.RANGES
            },
            [i for i, name in name_of.items() if safety.rules[name] is MergeRule.COMPARE],
            len(self._places),
        )

    def _describe(
        self,
        problem: Problem,
        arguments: HostArguments,
        buffers: LaunchBuffers,
        safety: SplitSafety,
    ) -> SplitLaunch:
        contents = tuple(
            buffers.places.get(index, value) for index, value in enumerate(arguments.values)
        )

        prepare = Prepare(
            kernel=problem.kernel,
            ndrange=problem.ndrange,
            arguments=problem.arguments,
            contents=contents,  # type: ignore[arg-type] # arrays all have places
            memory_bytes=self._devices.memory.size,
            in_place=_find_in_place(problem, safety),
        )
        return SplitLaunch(
            space=safety.space,
            prepare=prepare,
            collect=buffers.collect,
            result_bytes=buffers.result_bytes,
            is_known_even=_is_known_even(problem),
        )

    def _finish(
        self,
        buffers: LaunchBuffers,
        arguments: HostArguments,
        memory: SharedMemory,
        execution: Execution,
    ) -> None:
        """Merge, and only then write into the caller's arrays.

        Raises
        ------
        InputError
            If two devices have changed an element to different values.
        """
        arrays = arguments.buffers
        handed = [n for n, one in enumerate(execution.states) if one.collected.any()]
        widths = {index: array.dtype.itemsize for index, array in arrays.items()}
        for index, conflicts in buffers.merge(memory, handed, widths).items():
            if conflicts:
                msg = (
                    f"argument {index}: {conflicts} elements were written by work-groups on "
                    "different devices, with different values: the result depends on their order. "
                    "The arrays are as they were; run the kernel on one device"
                )
                raise InputError(msg)
        buffers.take(memory, {i: as_bytes(array) for i, array in arrays.items()}, handed)

    def _note(self, execution: Execution) -> None:
        """Remember what is still to come from the devices, and which have failed."""
        for number, state in enumerate(execution.states):
            self._outstanding[number] = state.outstanding
            if state.error is not None and state.is_gone:
                self._errors[number] = state.error

    def _release(self) -> None:
        """Have the devices drop their buffers; nobody waits for that."""
        for number in range(len(self._places)):
            if number not in self._errors:
                self._outstanding[number] += 1
                self._devices.send(number, Finish())


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
