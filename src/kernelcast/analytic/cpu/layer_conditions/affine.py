"""Address expressions of a loop nest as strides per loop, in bytes."""

from dataclasses import dataclass

from kernelcast.expressions import Atom, Expr, Symbol, SymbolKind
from kernelcast.expressions.loop_nest import LoopNest, NestAccess
from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineAccess:
    """An access whose address is a sum of loop variables times strides.

    Parameters
    ----------
    access : NestAccess
        What it was made of.
    strides : tuple of Expr
        Bytes by which the address moves per iteration of each loop, outermost first, over
        constants; with inner loops that start where outer ones are (tiles, triangles) moving along.
    offset : Expr
        The address of the very first iteration, in bytes, over constants.
    """

    access: NestAccess
    strides: tuple[Expr, ...]
    offset: Expr


def read_accesses(nest: LoopNest) -> tuple[AffineAccess, ...]:
    """Take the addresses of a nest apart.

    Raises
    ------
    InputError
        If an index is no sum of loop variables times constants, or names a variable that is no
        loop of the nest; says where.
    """
    return tuple(_read_access(nest, access) for access in nest.accesses)


def _read_access(nest: LoopNest, access: NestAccess) -> AffineAccess:
    strides = []
    address = access.offset_bytes
    for loop in reversed(nest.loops):
        variable = Symbol(SymbolKind.LOOP, loop.name)
        factor = _factor(address, variable)
        if factor is None:
            raise InputError(_explain(access, f"is not affine in {loop.name}"))
        strides.append(factor * loop.step)
        address = address.substitute({variable: loop.start})
    moving = sorted(str(one) for one in address.symbols() if not one.is_parameter)
    if moving:
        raise InputError(_explain(access, f"moves with {moving[0]}, which is no loop around it"))
    return AffineAccess(access=access, strides=tuple(reversed(strides)), offset=address)


def _factor(address: Expr, variable: Symbol) -> Expr | None:
    """Give what a variable is multiplied with, over constants; None if it is not affine in it."""
    factor = Expr.constant(0)
    for monomial, coefficient in address.products:
        if not any(variable in _symbols(atom) for atom in monomial):
            continue
        rest = tuple(atom for atom in monomial if atom is not variable)
        if len(rest) + 1 != len(monomial) or not all(atom.is_parameter for atom in rest):
            return None
        factor = factor + Expr({rest: coefficient})
    return factor


def _symbols(atom: Atom) -> frozenset[Symbol]:
    return frozenset({atom}) if isinstance(atom, Symbol) else atom.symbols()


def _explain(access: NestAccess, reason: str) -> str:
    where = f"line {access.line}: " if access.line else ""
    text = access.text or f"{access.array} at byte {access.offset_bytes}"
    return (
        f"{where}the index of {text} {reason}; expected a sum of loop variables times constants "
        "(the cache simulator takes any address)"
    )
