"""A problem's arguments on a device: buffers that are ours, so that kernels may write to them.

Nothing has to be copied before a kernel writes: what it may have changed is filled anew by its
recipe. Only where that takes longer than to copy (permutations, files, memory that the host cannot
write to) a copy is kept. Of buffers that a kernel writes only those parts are filled that its
samples touch, where the source tells which; of those that it only reads all, since samples must not
find in caches what was filled just before them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

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
from kernelcast.sampling.buffer_pool import Part, PooledBuffer
from kernelcast.sampling.byte_ranges import Ranges
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.scratch import KernelArgument, Reach, clip_to_pages
from kernelcast.sampling.session import DeviceSession

# Smaller buffers are filled in less time than it takes to find out what is touched.
_LEAST_BYTES = 1 << 20
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
    reach : Reach, optional
        Which bytes boxes of work-groups touch.

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
        reach: Reach | None = None,
    ) -> None:
        self._queue, self._pool, self._reach = session.queue, session.buffers, reach
        self._recipes = recipes = list_recipes(problem, seed=seed)
        self._written = {one for one in recipes if accesses[one] is not Access.READ}
        # What is there of buffers that are not filled as a whole.
        self._parts = {one: Ranges() for one in self._written if self._fills_in_parts(one)}
        whole = [one for one in recipes if one not in self._parts]
        self._held = dict(zip(whole, self._pool.take([recipes[one] for one in whole]), strict=True))
        for place in self._parts:
            self._held[place] = self._pool.get(recipes[place][0].bytes)
            self._held[place].content = None
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
        """Buffers among the arguments that hold all of their content."""
        return [one.buffer for place, one in self._held.items() if place not in self._parts]

    def prepare(self, boxes: Iterable[GroupBox]) -> None:
        """Fill what boxes of work-groups touch and is not there yet."""
        if not self._parts or self._reach is None:
            return
        wanted: dict[int, list[Part]] = {place: [] for place in self._parts}
        for box in boxes:
            for place, ranges in self._reach.list_ranges(box).items():
                if place in wanted:
                    wanted[place] += ranges
        self._fill_parts({
            place: self._parts[place].add(clip_to_pages(ranges, self._recipes[place][0].bytes))
            for place, ranges in wanted.items()
        })  # fmt: skip

    def prepare_whole(self) -> None:
        """Fill all that is not there yet: the whole launch is to run."""
        self._fill_parts({
            place: known.add([(0, self._recipes[place][0].bytes)])
            for place, known in self._parts.items()
        })  # fmt: skip
        self._parts = {}

    def refresh(self) -> None:
        """Give what the kernel may have changed, and may read, its content again."""
        for place, copy in self._copies.items():
            self._copy(self._held[place], copy, place)
        made = self._noticed - self._copies.keys() - self._parts.keys()
        self._forget(made)
        self._pool.fill([(self._held[one], *self._recipes[one]) for one in made])
        noticed = self._noticed & self._parts.keys()
        self._fill_parts({one: self._parts[one].list_all() for one in noticed})
        self._queue.finish()

    def release(self) -> None:
        """Give the buffers back; what the kernel may have changed holds nothing known."""
        self._queue.finish()
        self._forget(self._written)
        self._pool.give_back([*self._held.values(), *self._copies.values()])
        self.arguments, self._held, self._copies = [], {}, {}
        self._written, self._noticed, self._parts = set(), set(), {}

    def _fills_in_parts(self, place: int) -> bool:
        """Tell whether it is known which parts are touched, and worth it."""
        argument, _ = self._recipes[place]
        return (
            self._reach is not None
            and place in self._reach.places
            and self._pool.fills_in_place
            and argument.init not in _SLOW_TO_MAKE
            and argument.bytes >= _LEAST_BYTES
        )

    def _fill_parts(self, parts: Mapping[int, Sequence[Part]]) -> None:
        self._pool.fill_parts(
            [(self._held[place], *self._recipes[place], one) for place, one in parts.items() if one]
        )

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

    def _forget(self, places: Collection[int]) -> None:
        for one in places:
            self._held[one].content = None


def list_recipes(problem: Problem, *, seed: int) -> dict[int, tuple[BufferArgument, int]]:
    """Give the recipe of each buffer and the seed of its content, by its position."""
    return {
        place: (one, seed_of(seed, place))
        for place, one in enumerate(problem.arguments)
        if isinstance(one, BufferArgument)
    }


def seed_of(seed: int, place: int) -> int:
    """Give the seed of an argument's content, of a problem's seed and the argument's position."""
    return seed * 1000 + place
