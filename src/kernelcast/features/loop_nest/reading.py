"""Reads a listing into a `LoopNest`."""

from collections.abc import Mapping

from kernelcast.expressions import TRUE
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.features.loop_nest.arrays import read_arrays
from kernelcast.features.loop_nest.body import Body
from kernelcast.features.loop_nest.listing import parse_listing
from kernelcast.features.loop_nest.loops import find_nest
from kernelcast.records.errors import InputError
from kernelcast.records.operations import add_weighted


def read_loop_nest(source: str, constants: Mapping[str, int], *, name: str = "") -> LoopNest:
    """Read a C99 listing: declarations of arrays and scalars, then one perfect loop nest.

    Iterations may do less than others, by ``if``, ``else``, ``continue`` and ``? :``: accesses and
    operations know in which iterations they are executed, conditions on data are decisions that
    stay open. Names that it does not declare are constants; they stay symbols in bounds,
    dimensions and addresses, so that sizes can be solved for. Arrays may have several dimensions
    or one with a flattened index; includes and pragmas are passed over.

    Parameters
    ----------
    constants : mapping of str to int
        Values of constants, as ``-D``; those that have none yet may be given later.
    name : str
        For messages.

    Returns
    -------
    LoopNest
        Each element is loaded at most once per iteration, and stored at most once: registers hold
        it in between. `executed` holds arithmetic on data; that of indices, which compilers turn
        into address modes, is not counted.

    Raises
    ------
    InputError
        With line and column: no C99, no loop or several, a loop of another form, statements
        between loops, an index that is not affine, a pointer, or a function that is not known.

    Examples
    --------
    >>> nest = read_loop_nest(
    ...     "double a[N], b[N], s; for (int i = 0; i < N; ++i) a[i] = s * b[i];", {"N": 1000}
    ... )
    >>> [(one.text, one.is_store) for one in nest.accesses]
    [('b[i]', False), ('a[i]', True)]
    """
    label = name or "<listing>"
    listing = parse_listing(source, constants, label)
    nest = find_nest(listing)
    body = Body(listing, nest, read_arrays(listing))
    body.read()
    tally = body.tally
    if not tally.accesses:
        msg = f"{label}: no array is read or written; give a loop over arrays"
        raise InputError(msg)
    branches = tally.branches()
    conditions = (*branches, *(one.condition for one in tally.accesses))
    decided = {symbol for one in conditions for symbol in one.symbols()}
    notes = nest.notes
    if tally.repeated:
        notes.append(
            f"{tally.repeated} repeated accesses to an element within an iteration are taken to be "
            "held in registers"
        )
    return LoopNest(
        name=label,
        loops=tuple(nest.loops),
        arrays=tuple(body.arrays.values()),
        accesses=tally.accesses,
        executed=add_weighted([(one, 1) for one in branches.values()]),
        constants={key: value for key, value in constants.items() if key in listing.constants},
        chain=body.chain,
        notes=tuple(notes),
        branches=tuple(one for one in branches.items() if one[0] != TRUE),
        decisions=tuple(one for one in body.decisions if one in decided),
    )
