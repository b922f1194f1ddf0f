"""Sums of products as people write them."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias


class Factor(Protocol):
    """What a product is made of."""

    @property
    def text_needs_parentheses(self) -> bool:
        """Whether its text falls apart beside an operator."""


Term: TypeAlias = tuple[tuple[Factor, ...], int]


def write_sum(terms: Sequence[Term]) -> str:
    """Write a sum of products.

    Parameters
    ----------
    terms : sequence of (factors, coefficient)
        The products, in the order in which they shall appear.

    Examples
    --------
    >>> write_sum([((), -3)])
    '-3'
    """
    if not terms:
        return "0"
    if _is_sole(terms):
        return str(terms[0][0][0])
    # A text that begins with a minus reads badly: `n - x`, not `-x + n`.
    ordered = list(terms)
    first = next((at for at, (_, coefficient) in enumerate(terms) if coefficient > 0), 0)
    ordered.insert(0, ordered.pop(first))
    text = ""
    for factors, coefficient in ordered:
        body = _write_product(factors, abs(coefficient))
        if text:
            text += f" {'-' if coefficient < 0 else '+'} {body}"
        else:
            text = f"-{body}" if coefficient < 0 else body
    return text


def write_operand(terms: Sequence[Term], *, as_factor: bool) -> str:
    """Write a sum of products so that it can stand beside an operator.

    Parameters
    ----------
    terms : sequence of (factors, coefficient)
        The products.
    as_factor : bool
        Whether a product needs parentheses as well: right of a division, as an exponent.
    """
    text = write_sum(terms)
    if _is_sole(terms):
        return f"({text})" if terms[0][0][0].text_needs_parentheses else text
    is_loose = len(terms) > 1 or (as_factor and "*" in text)
    return f"({text})" if is_loose or text.startswith("-") else text


def _is_sole(terms: Sequence[Term]) -> bool:
    """Tell whether the sum is one factor and nothing else."""
    return len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1


def _write_product(factors: tuple[Factor, ...], coefficient: int) -> str:
    texts = [f"({one})" if one.text_needs_parentheses else str(one) for one in factors]
    if coefficient != 1 or not texts:
        texts.insert(0, str(coefficient))
    return "*".join(texts)
