"""Launches of a kernel that was answered by its other sizes before: only their times are computed.

Where nothing may run, other sizes answer and contents do not matter, launches differ in a few
numbers: a plan keeps all else. What takes a closer look is None here, and goes the usual way.
"""

import math
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from kernelcast.models.evidence.piece import Kind, Piece
from kernelcast.models.evidence.sizes import SizeTable
from kernelcast.predictor.answering.answerer import Answerer
from kernelcast.predictor.answering.composing import NOTHING, Basis, compose
from kernelcast.predictor.answering.evidence import measure_launch
from kernelcast.predictor.answering.identity import INSTRUCTIONS, identify_launch
from kernelcast.predictor.answering.kernel_sizes import SizeTables, name_table
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.known_launches import KnownLaunch
from kernelcast.records.arguments import Argument, HeldBuffer, LocalArgument, ScalarArgument
from kernelcast.records.device import DeviceDescription
from kernelcast.records.estimates import Estimate, Interval
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.problem import Problem

if TYPE_CHECKING:
    from kernelcast.launches.live import LiveName
    from kernelcast.launches.size_program import SizeProgram

_MOST_PLANS, _MOST, _MOST_OBSERVED = 256, 1024, 100_000
_FIELDS = frozenset(one.name for one in fields(Estimate))


class PlannedEstimate(Estimate):
    """An estimate of which the interval is there; the rest is made when it is looked at."""

    __slots__ = ("_make",)

    @classmethod
    def plan(cls, interval: Interval, make: Callable[[], Estimate]) -> Self:
        """Give an estimate that is made whole by a function."""
        planned = object.__new__(cls)
        object.__setattr__(planned, "interval", interval)
        object.__setattr__(planned, "_make", make)
        return planned

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the field holds
        if name not in _FIELDS:
            raise AttributeError(name)
        whole = self._make()
        for one in _FIELDS - {"interval"}:
            object.__setattr__(self, one, getattr(whole, one))
        return getattr(self, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Estimate) and all(
            getattr(self, one) == getattr(other, one) for one in _FIELDS
        )

    __hash__ = Estimate.__hash__


class _Told(NamedTuple):
    """What was told of a launch: the rest of its estimate can be made of it."""

    sizes: tuple[int, ...]
    numbers: tuple[float, ...]
    per_item: float
    table: SizeTable
    answer: tuple[float, float, str]


_Answers = dict[Hashable, tuple[_Told, PlannedEstimate]]


class Settled(NamedTuple):
    """A launch's answer with all that stands behind it."""

    basis: Basis
    piece: Piece
    estimate: Estimate


@dataclass(slots=True, kw_only=True, eq=False)
class _Plan:
    """What launches of a kernel with one local size have in common.

    Parameters
    ----------
    problem : Problem
        One of them; its buffers are nobody's.
    device : DeviceDescription
        Where they run.
    policy : Policy
        What answers may be made of.
    basis : Basis
        What was known of it.
    kinds : tuple of str or None
        Types of scalars, by position; empty for buffers, None for local memory.
    program : callable
        What sizes decide.
    watch : callable
        Gives the kernel's tables of sizes while they stand.
    is_unseen : callable
        Tells of an index space that the store has no launch with it, without a look at it.
    observed : set
        Index spaces of launches that were observed since the program began.
    answers, older : dict
        By sizes and arguments: those that stand, and those from before other sizes changed.
    numbers : tuple of dict
        By position and name of an argument: bytes of a buffer, or value of a scalar.
    """

    problem: Problem
    device: DeviceDescription
    policy: Policy
    basis: Basis
    kinds: tuple[str | None, ...]
    program: "SizeProgram"
    watch: Callable[[], SizeTables | None]
    is_unseen: Callable[[tuple[int, ...]], bool]
    observed: set[tuple[int, ...]] = field(default_factory=set)
    tables: SizeTables | None = None
    answers: _Answers = field(default_factory=dict)
    older: _Answers = field(default_factory=dict)
    numbers: tuple[dict[Hashable, float], ...] = field(init=False)

    def __post_init__(self) -> None:
        self.numbers = tuple({} for _ in self.kinds)

    def answer(self, name: "LiveName") -> Estimate | None:
        """Answer a launch; None where that takes a closer look."""
        sizes, _, _, given = name.launch_key
        tables = self.watch()
        if tables is None or sizes in self.observed or not self.is_unseen(sizes):
            return None
        if tables is not self.tables:
            self.older = _join(self.older, self.answers)
            self.tables, self.answers = tables, {}
        numbers = self._read(name, given)
        if numbers is None:
            return None
        key = sizes, numbers
        found = self.answers.get(key)
        if found is None:
            fits = key not in self.older and self._fits(sizes)
            found = self._tell(sizes, numbers, tables) if fits else None
            if found is None:
                return None
            if len(self.answers) >= _MOST:
                del self.answers[next(iter(self.answers))]
            self.answers[key] = found
        return found[1]

    def stands(self) -> bool:
        """Tell whether neither other sizes nor the store have changed."""
        return self.is_unseen(()) and self.watch() is self.tables is not None

    def _read(self, name: "LiveName", given: Sequence[Any]) -> tuple[float, ...] | None:
        """Give bytes of buffers and values of scalars; None where they may not fit the kernel."""
        found: list[float] = []
        if len(given) != len(self.kinds):
            return None
        for place, (one, known) in enumerate(zip(given, self.numbers, strict=True)):
            number = known.get(one)
            if number is None:
                number = self._read_argument(name, place)
                if number is None:
                    return None
                if len(known) >= _MOST:
                    known.clear()
                known[one] = number
            found.append(number)
        return tuple(found)

    def _read_argument(self, name: "LiveName", place: int) -> float | None:
        kind, one, value = self.kinds[place], name.launch_key[3][place], name.launch.args[place]
        if kind is None:
            return one if type(one) is int else None
        if kind:
            fits = isinstance(value, np.generic) and value.dtype.str == kind
            return value.item() if fits else None
        from kernelcast.launches.live import takes_argument

        # An array that begins within its buffer is a part of it.
        is_memory = type(one) is tuple and one[2:] == (0,)
        return one[1] if is_memory and takes_argument(name, place) else None

    def _fits(self, sizes: tuple[int, ...]) -> bool:
        local = self.problem.ndrange.known_local_size
        for size, one in zip(sizes, local, strict=False):
            if type(size) is not int or size <= 0 or size % one:
                return False
        return len(sizes) == len(local)

    def _tell(
        self, sizes: tuple[int, ...], numbers: tuple[float, ...], tables: SizeTables
    ) -> tuple[_Told, PlannedEstimate] | None:
        per_item = self.program(sizes, numbers)
        if per_item is None:
            return None
        model, coverage = self.basis.evidence.model, self.basis.estimate.coverage
        items = math.prod(sizes)
        logs = math.log(items), math.log(float(items) * per_item), math.nan, math.nan
        found = tables.get(name_table(logs))
        if found is None or found[0] is not model:
            return None
        held = sum(one for one, kind in zip(numbers, self.kinds, strict=True) if kind == "")
        answer = found[1].tell(logs, time.time(), float(held))
        told = _Told(sizes, numbers, per_item, found[1], answer)
        interval = model.surround_alone(Kind.OTHER_SIZES, answer[0], answer[1], coverage)
        return told, PlannedEstimate.plan(interval, lambda: self.settle(told).estimate)

    def settle(self, told: _Told) -> Settled:
        """Make what the usual way would have made."""
        problem, policy = self.problem, self.policy
        pairs = zip(problem.arguments, told.numbers, strict=True)
        problem = replace(
            problem,
            ndrange=replace(problem.ndrange, global_size=told.sizes),
            arguments=tuple(_replace_number(*one) for one in pairs),
        )
        work = float(math.prod(told.sizes)) * told.per_item
        identity = identify_launch(
            problem, self.device, seed=policy.settings.seed,
            parameters={} if math.isnan(work) else {INSTRUCTIONS: work},
        )  # fmt: skip
        basis = replace(
            self.basis,
            estimate=replace(self.basis.estimate, ndrange=problem.ndrange, identity=identity),
            work=measure_launch(problem, identity, problem.ndrange, None),
        )
        piece = self.basis.evidence.model.weigh_sizes(told.table.describe(*told.answer))
        return Settled(basis, piece, compose(basis, NOTHING, (piece,), policy.methods))

    def list_all(self) -> list[tuple[_Told, PlannedEstimate]]:
        """Give all that was answered."""
        return [*self.answers.values(), *self.older.values()]

    def find(self, identity: LaunchIdentity) -> Settled | None:
        """Find what was answered of a launch; None where nothing was."""
        ndrange, own = identity.ndrange, self.basis.estimate
        if ndrange is None or ndrange.local_size != own.ndrange.local_size:
            return None
        for told, _ in self.list_all():
            if told.sizes == ndrange.global_size:
                settled = self.settle(told)
                one = settled.basis.estimate.identity
                if one is not None and one.key == identity.key:
                    return settled
        return None


def _replace_number(argument: Argument, number: float) -> Argument:
    if isinstance(argument, ScalarArgument):
        return replace(argument, values=(number,))
    if isinstance(argument, LocalArgument):
        return LocalArgument(bytes=int(number))
    return replace(argument, count=int(number) // argument.element.bytes)


def _join(older: _Answers, newer: _Answers) -> _Answers:
    """Give the last of both."""
    found = older | newer
    return dict([*found.items()][-_MOST:])


class SizePlans:
    """Plans of kernels; threads share them, and read them without a lock.

    Parameters
    ----------
    answerer : Answerer
        Finds the parts of answers.
    policy : Policy
        What answers may be made of.
    """

    def __init__(self, answerer: Answerer, policy: Policy) -> None:
        self._answerer, self._policy = answerer, policy
        # What rests on anything else than other sizes is not planned.
        self._is_possible = not (
            policy.settings.samples or policy.methods.shadow or answerer.foretell
        )
        self._plans: dict[Hashable, _Plan] = {}
        self._observed: dict[Hashable, set[tuple[int, ...]]] = {}
        self._lock = threading.Lock()

    def answer(self, name: "LiveName") -> Estimate | None:
        """Answer a launch of live objects by its kernel's plan; None where there is none."""
        plan = self._plans.get((name.kernel_key, *name.launch_key[1:3]))
        return None if plan is None else plan.answer(name)

    def learn(self, name: "LiveName", request: LaunchRequest, known: KnownLaunch) -> None:
        """Plan launches like one that was answered the usual way, where its other sizes did it."""
        if not self._is_possible or request.policy is not self._policy or known.basis is None:
            return
        is_alike = known.answer is known.sampled and known.absence is None
        if not is_alike or [one.kind for one in known.pieces] != [Kind.OTHER_SIZES]:
            return
        key = (name.kernel_key, *name.launch_key[1:3])
        with self._lock:
            before = self._plans.get(key)
            observed = self._observed.setdefault(_name_kernel(known.identity), set())
        if len(observed) >= _MOST_OBSERVED or (before is not None and before.stands()):
            return
        plan = self._make(name, request, known.basis, known.identity)
        if plan is None:
            return
        plan.observed = observed
        if before is not None:
            plan.older = _join(before.older, before.answers)
        with self._lock:
            self._plans.pop(key, None)
            self._plans[key] = plan
            if len(self._plans) > _MOST_PLANS:
                del self._plans[next(iter(self._plans))]

    def _make(
        self, name: "LiveName", request: LaunchRequest, basis: Basis, identity: LaunchIdentity
    ) -> _Plan | None:
        from kernelcast.launches.size_program import find_scalars, write_program

        problem = request.problem
        kinds = [_name_kind(one) for one in problem.arguments]
        is_unseen = self._answerer.watch_store(identity)
        if name.launch_key[1] is None or is_unseen is None or _UNPLANNED in kinds:
            return None
        ndrange, scalars = problem.ndrange, find_scalars(problem.arguments)
        program = write_program(
            problem.kernel, ndrange.known_local_size, ndrange.global_offset, scalars
        )
        if program is None:
            return None
        arguments = tuple(
            replace(one, read=None) if isinstance(one, HeldBuffer) else one
            for one in problem.arguments
        )
        return _Plan(
            problem=replace(problem, arguments=arguments),
            device=request.device,
            policy=request.policy,
            basis=basis,
            kinds=tuple(kinds),
            program=program,
            watch=self._answerer.evidence.sizes.watch(identity),
            is_unseen=is_unseen,
        )

    def observe(self, known: KnownLaunch) -> Settled | None:
        """Take that a launch is observed now; give what was answered of it by a plan."""
        identity, found = known.identity, None
        if not self._is_possible or identity.ndrange is None:
            return None
        with self._lock:
            plans = [*self._plans.values()]
            observed = self._observed.setdefault(_name_kernel(identity), set())
        observed.add(identity.ndrange.global_size)
        if len(observed) > _MOST_OBSERVED:
            # Forgotten where no plan will be made any more.
            observed.pop()
            with self._lock:
                self._plans = {key: one for key, one in self._plans.items()
                               if one.observed is not observed}  # fmt: skip
        for one in plans:
            found = found or one.find(identity)
        return found

    def take_all(self) -> list[Settled]:
        """Forget all plans; give what they answered."""
        with self._lock:
            plans = [*self._plans.values()]
            self._plans.clear()
        return [one.settle(told) for one in plans for told, _ in one.list_all()]


_UNPLANNED = "?"


def _name_kind(argument: Argument) -> str | None:
    """Name the type of a scalar; nothing of a buffer, None of local memory."""
    if isinstance(argument, LocalArgument):
        return None
    if isinstance(argument, ScalarArgument):
        return argument.element.dtype.str if argument.element.lanes == 1 else _UNPLANNED
    is_usual = argument.count and not (
        isinstance(argument, HeldBuffer) and (argument.digest or argument.overlaps)
    )
    return "" if is_usual else _UNPLANNED


def _name_kernel(identity: LaunchIdentity) -> tuple[str, str]:
    return identity.kernel.digest, identity.device.id
