"""Ranges of sizes on the command line."""

from typing import Final

from kernelcast.records.arithmetic import ArithmeticProblem, evaluate
from kernelcast.records.errors import InputError

_MOST_SIZES: Final = 10_000
_PARTS: Final = frozenset({2, 3})


def read_range(text: str, *, told: str, example: str) -> tuple[int, ...]:
    """Read ``FIRST:LAST:STEP``, which may be arithmetic; the last value belongs to it.

    Parameters
    ----------
    text : str
        The range.
    told : str
        What was given, as an error says it.
    example : str
        What could have been given.

    Examples
    --------
    >>> read_range("100:2*100:50", told="-D N", example="100:2000:20")
    (100, 150, 200)
    """
    expected = f"{told}: expected FIRST:LAST:STEP, such as {example}"
    try:
        numbers = [evaluate(one) for one in text.split(":")]
    except ArithmeticProblem as problem:
        msg = f"{expected} ({problem})"
        raise InputError(msg) from problem
    if len(numbers) not in _PARTS or any(int(one) != one for one in numbers):
        raise InputError(expected)
    first, last, step = (int(one) for one in (*numbers, 1)[:3])
    if step < 1 or not 0 < first <= last or (last - first) // step >= _MOST_SIZES:
        msg = f"{expected}, with 0 < FIRST <= LAST and at most {_MOST_SIZES} sizes"
        raise InputError(msg)
    return tuple(range(first, last + 1, step))
