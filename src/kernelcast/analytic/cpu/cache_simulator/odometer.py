"""Compiled walk through a loop nest: the addresses of its iterations, a chunk at a time."""

from kernelcast.analytic.cpu.cache_simulator.compiling import compiled
from kernelcast.analytic.cpu.cache_simulator.layout import IntArray

START, STOP, STEP = range(3)


@compiled
def rewind(bounds: IntArray, variables: IntArray) -> bool:
    """Go to the first iteration; False if there is none.

    Parameters
    ----------
    bounds : ndarray of shape (depth, 3, alternatives, 1 + depth)
        Of each loop, outermost first: start, stop and step, each a constant and the coefficients
        of the variables of the loops around it. The latest of several starts holds and the
        earliest of several stops, in the direction of the step.
    variables : ndarray of shape (depth,)
        Is set.
    """
    variables[:] = 0
    variables[0] = find_bound(bounds, variables, 0, START)
    return _settle(bounds, variables, 1)


@compiled
def fill(
    bounds: IntArray, variables: IntArray, strides: IntArray, buffer: IntArray, limit: int
) -> int:
    """Write the addresses of the next iterations, and go on.

    Parameters
    ----------
    bounds : ndarray of shape (depth, 3, alternatives, 1 + depth)
        See `rewind`.
    variables : ndarray of shape (depth,)
        Where to begin; afterwards the next iteration, or beyond the outermost loop's end.
    strides : ndarray of shape (accesses, 1 + depth)
        Of each access: its address where all variables are 0, bytes per unit of each variable.
    buffer : ndarray of shape (at least limit * accesses,)
        Is filled in order of execution.
    limit : int
        Iterations at most.

    Returns
    -------
    int
        Iterations written; fewer than `limit` at the end of the nest only.
    """
    accesses = strides.shape[0]
    inner = bounds.shape[0] - 1
    step = bounds[inner, STEP, 0, 0]
    done = at = 0
    while done < limit and is_inside(bounds, variables, 0):
        stop = find_bound(bounds, variables, inner, STOP)
        take = min(limit - done, count_steps(variables[inner], stop, step))
        for access in range(accesses):
            address = strides[access, 0]
            for loop in range(inner + 1):
                address += strides[access, 1 + loop] * variables[loop]
            stride = strides[access, 1 + inner] * step
            place = at + access
            for _ in range(take):
                buffer[place] = address
                address += stride
                place += accesses
        at += take * accesses
        done += take
        variables[inner] += take * step
        if not is_inside(bounds, variables, inner):
            _settle(bounds, variables, inner + 1)
    return done


@compiled
def count_row(bounds: IntArray, variables: IntArray) -> int:
    """Count what is left of the innermost loop's present run; 0 behind the end of the nest."""
    if not is_inside(bounds, variables, 0):
        return 0
    inner = bounds.shape[0] - 1
    stop = find_bound(bounds, variables, inner, STOP)
    return count_steps(variables[inner], stop, bounds[inner, STEP, 0, 0])


@compiled
def count_iterations(bounds: IntArray, variables: IntArray, most: int) -> int:
    """Count the nest's iterations, up to about `most`; sets the variables anyhow."""
    total = 0
    inside = rewind(bounds, variables)
    inner = bounds.shape[0] - 1
    while inside and total < most:
        row = count_row(bounds, variables)
        total += row
        variables[inner] += row * bounds[inner, STEP, 0, 0]
        inside = _settle(bounds, variables, inner + 1)
    return total


@compiled
def find_bound(bounds: IntArray, variables: IntArray, loop: int, which: int) -> int:
    """Give a loop's start or stop for the present variables around it."""
    takes_less = (which == STOP) == (bounds[loop, STEP, 0, 0] > 0)
    found = 0
    for at in range(bounds.shape[2]):
        value = bounds[loop, which, at, 0]
        for outer in range(loop):
            value += bounds[loop, which, at, 1 + outer] * variables[outer]
        if at == 0 or (value < found) == takes_less:
            found = value
    return found


@compiled
def is_inside(bounds: IntArray, variables: IntArray, loop: int) -> bool:
    """Tell whether a loop's variable has not reached its end."""
    stop = find_bound(bounds, variables, loop, STOP)
    if bounds[loop, STEP, 0, 0] > 0:
        return variables[loop] < stop  # type: ignore[no-any-return]
    return variables[loop] > stop  # type: ignore[no-any-return]


@compiled
def count_steps(value: int, stop: int, step: int) -> int:
    """Count the values from one on up to the stop."""
    if step > 0:
        return max(0, (stop - value + step - 1) // step)
    return max(0, (value - stop - step - 1) // -step)


@compiled
def _settle(bounds: IntArray, variables: IntArray, loop: int) -> bool:
    """Find the first iteration from where the loops before `loop` are.

    Starts the loops from `loop` on anew; where one is at its end, the loop around it makes a
    step.

    Returns
    -------
    bool
        False if the nest is over.
    """
    depth = bounds.shape[0]
    while True:
        if is_inside(bounds, variables, loop - 1):
            if loop == depth:
                return True
            variables[loop] = find_bound(bounds, variables, loop, START)
            loop += 1
        elif loop == 1:
            return False
        else:
            loop -= 1
            variables[loop - 1] += bounds[loop - 1, STEP, 0, 0]
