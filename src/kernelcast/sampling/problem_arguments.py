"""A problem's arguments on a device: buffers that are ours, so that kernels may write to them.

Nothing has to be copied before a kernel writes: what it may have changed is filled anew by its
recipe. Only where that takes longer than to copy (permutations, files, memory that the host cannot
write to) a copy is kept.
"""

from collections.abc import Iterable, Sequence

from kernelcast.records.arguments import (
    Access,
    BufferArgument,
    Init,
    LocalArgument,
    ScalarArgument,
    make_scalar,
)
from kernelcast.records.ndrange import GroupBox
from kernelcast.records.problem import Problem
from kernelcast.sampling.buffer_pool import PooledBuffer
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.scratch import KernelArgument
from kernelcast.sampling.session import DeviceSession

_SLOW_TO_MAKE = frozenset({Init.PERMUTATION, Init.FILE})


class ProblemArguments:
    """A problem's arguments with true contents; a `HeldArguments`.

    Parameters
    ----------
    session : DeviceSession
        The device.
    problem : Problem
        Whose arguments.
    accesses : sequence of Access or None
        What the kernel may do with each; None where it is no buffer.
    seed : int
        Seed of random contents, of each together with its position.

    Raises
    ------
    InputError
        If a content cannot be made.
    """

    def __init__(
        self,
        session: DeviceSession,
        problem: Problem,
        accesses: Sequence[Access | None],
        *,
        seed: int,
    ) -> None:
        self._queue, self._pool = session.queue, session.buffers
        recipes = {
            place: (one, seed_of(seed, place))
            for place, one in enumerate(problem.arguments)
            if isinstance(one, BufferArgument)
        }
        self._recipes = recipes
        self._held = dict(zip(recipes, self._pool.take([*recipes.values()]), strict=True))
        self._written = {one for one in recipes if accesses[one] is not Access.READ}
        # What a kernel only writes it cannot notice.
        self._noticed = {one for one in self._written if accesses[one] is not Access.WRITE}
        self._copies: dict[int, PooledBuffer] = {}
        self.arguments: list[KernelArgument] = [
            self._put(place, one) for place, one in enumerate(problem.arguments)
        ]
        try:
            self._keep_copies()
        except BaseException:
            self.release()
            raise

    @property
    def copied_bytes(self) -> int:
        """Bytes that are copied."""
        return sum(self._recipes[one][0].bytes for one in self._copies)

    @property
    def whole_buffers(self) -> list[cl.Buffer]:
        """Buffers among the arguments."""
        return [one.buffer for one in self._held.values()]

    def prepare(self, boxes: Iterable[GroupBox]) -> None:
        """Do nothing: all is there."""

    def prepare_whole(self) -> None:
        """Do nothing: all is there."""

    def refresh(self) -> None:
        """Give what the kernel may have changed, and may read, its content again."""
        for place, copy in self._copies.items():
            self._copy(self._held[place], copy, place)
        made = [one for one in self._noticed if one not in self._copies]
        self._forget(made)
        self._pool.fill([(self._held[one], *self._recipes[one]) for one in made])
        self._queue.finish()

    def release(self) -> None:
        """Give the buffers back; what the kernel may have changed holds nothing known."""
        self._queue.finish()
        self._forget(self._written)
        self._pool.give_back([*self._held.values(), *self._copies.values()])
        self.arguments, self._held, self._copies = [], {}, {}
        self._written, self._noticed = set(), set()

    def _put(
        self, place: int, argument: BufferArgument | ScalarArgument | LocalArgument
    ) -> KernelArgument:
        match argument:
            case BufferArgument():
                return self._held[place].buffer
            case ScalarArgument():
                return make_scalar(argument)
            case LocalArgument():
                return cl.LocalMemory(argument.bytes)

    def _keep_copies(self) -> None:
        for place in self._noticed:
            argument, _ = self._recipes[place]
            if argument.init in _SLOW_TO_MAKE or not self._pool.fills_in_place:
                copy = self._copies[place] = self._pool.get(argument.bytes)
                self._copy(copy, self._held[place], place)
        self._queue.finish()

    def _copy(self, target: PooledBuffer, source: PooledBuffer, place: int) -> None:
        size_bytes = self._recipes[place][0].bytes
        cl.enqueue_copy(self._queue, target.buffer, source.buffer, byte_count=size_bytes)

    def _forget(self, places: Sequence[int] | set[int]) -> None:
        for one in places:
            self._held[one].content = None


def seed_of(seed: int, place: int) -> int:
    """Give the seed of an argument's content, of a problem's seed and the argument's position."""
    return seed * 1000 + place
