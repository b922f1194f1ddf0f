"""Buffers whose contents decide how much work-items do: row pointers, edge lists, bins."""

from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.ir.values import sources_of


def depends_on_contents(facts: KernelFacts) -> bool:
    """Tell whether what a buffer holds may decide how long loops run or where conditions hold.

    So may a member of a structure or vector by value, which nobody counts with either.
    """
    conditions = *(one.guard for one in facts.reaches), *(loop.condition for loop in facts.loops)
    if sources_of(*conditions) & {one.name for one in facts.parameters if one.is_pointer}:
        return True
    given = {one.name for one in facts.parameters}
    members = (one.name.split(".") for condition in conditions for one in condition.symbols())
    return any(len(parts) > 1 and parts[0] in given for parts in members)


def find_index_buffers(facts: KernelFacts) -> frozenset[str]:
    """Give the buffers that would tell how long loops run and where conditions hold.

    Returns
    -------
    frozenset of str
        Parameters that the kernel only reads; none if none of them decides anything. One that
        decides nothing itself may tell where to look in another.
    """
    decide = sources_of(
        *(one.guard for one in facts.reaches), *(loop.condition for loop in facts.loops)
    )
    read_only = frozenset(
        one.name
        for one in facts.parameters
        if one.is_pointer and one.is_read and not one.is_written and not one.is_volatile
    )
    return read_only if decide & read_only else frozenset()
