"""Refuses launches whose accesses provably leave their buffers."""

from collections.abc import Sequence
from functools import lru_cache

from kernelcast.features.analysis import analyse
from kernelcast.features.counting.bindings import bind_scalars
from kernelcast.features.overruns import OverrunCheck
from kernelcast.records.arguments import Argument, BufferArgument
from kernelcast.records.errors import OverrunError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange

_MOST = 3


def refuse_overruns(kernel: Kernel, ndrange: NDRange, arguments: Sequence[Argument]) -> None:
    """Refuse a launch of which the source proves that it leaves a buffer."""
    found = _find(kernel, ndrange, arguments)
    if not found:
        return
    more = f"; {len(found) - _MOST} more places do so" if len(found) > _MOST else ""
    msg = (
        f"kernel {kernel.name}: {'; '.join(found[:_MOST])}{more}. To run it might end the "
        "process: give larger buffers or a smaller global size, or guard the access"
    )
    raise OverrunError(msg)


def _find(kernel: Kernel, ndrange: NDRange, arguments: Sequence[Argument]) -> list[str]:
    """Describe each access that leaves its buffer; none where nothing can be told."""
    try:
        facts, check = analyse(kernel).facts, _make_check(kernel)
        named = {
            parameter.name: one.bytes
            for parameter, one in zip(facts.parameters, arguments, strict=False)
            if isinstance(one, BufferArgument) and parameter.is_pointer
        }
        # An element that is read and written is two accesses, but one place.
        found = check.find(ndrange, named, bind_scalars(facts, arguments))
        return list(dict.fromkeys(map(str, found)))
    except Exception:  # noqa: BLE001 - a help: nothing about it may cost the answer
        return []


@lru_cache(maxsize=256)
def _make_check(kernel: Kernel) -> OverrunCheck:
    return OverrunCheck(analyse(kernel).facts)
