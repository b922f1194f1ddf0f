"""Adds single operations to blocks."""

from functools import lru_cache

from kernelcast.features.blocks.model import Block
from kernelcast.features.syntax.tree import Node
from kernelcast.features.syntax.types import TypeClass, TypeInfo
from kernelcast.records.operations import NumberClass, Operation
from kernelcast.records.operations import OperationKind as Kind


def add(block: Block, kind: Kind, type_info: TypeInfo | None = None, *, name: str = "") -> None:
    """Add one operation to a block."""
    if type_info is None or not type_info.is_number:
        operation = make_operation(kind, NumberClass.NONE, 0, 1, name)
    else:
        number = number_class(type_info)
        operation = make_operation(kind, number, type_info.bits, type_info.lanes, name)
    operations = block.operations
    operations[operation] = operations.get(operation, 0) + 1


@lru_cache(maxsize=1024)
def make_operation(
    kind: Kind, number: NumberClass, bits: int, lanes: int, name: str = ""
) -> Operation:
    """Make an operation, or give the one that was made before: there are few different ones."""
    return Operation(kind=kind, number=number, bits=bits, lanes=lanes, name=name)


def number_class(info: TypeInfo) -> NumberClass:
    """Tell what numbers of a type are."""
    if info.type_class is TypeClass.FLOAT:
        return NumberClass.FLOAT
    return NumberClass.INTEGER if info.is_integer else NumberClass.NONE


def find_operation(kind: Kind, node: Node, left: Node) -> tuple[Kind, TypeInfo]:
    """Give the operation of a binary operator; sums of pointers are addresses."""
    if TypeClass.POINTER in (node.type.type_class, left.type.type_class):
        return (Kind.COMPARE if kind is Kind.COMPARE else Kind.ADDRESS), node.type
    return kind, left.type if kind is Kind.COMPARE else node.type


def step_kind(info: TypeInfo) -> Kind:
    """Give the operation of `++` and `--`."""
    return Kind.ADDRESS if info.type_class is TypeClass.POINTER else Kind.ADD


def is_bool(info: TypeInfo) -> bool:
    """Tell whether a type is `bool`, whose values are conditions already."""
    return info.bits == 8 and info.name.rpartition(" ")[2] in ("bool", "_Bool")


def count_conversion(before: TypeInfo, after: TypeInfo, block: Block) -> None:
    """Count the conversion of a value from one type to another."""
    if not (before.is_number and after.is_number) or before.lanes != after.lanes:
        return  # pointers, and scalars that fill a vector
    is_float = TypeClass.FLOAT in (before.type_class, after.type_class)
    if before.bits != after.bits or (is_float and before.type_class is not after.type_class):
        number = NumberClass.FLOAT if is_float else NumberClass.INTEGER
        bits = max(before.bits, after.bits)
        operation = make_operation(Kind.CONVERT, number, bits, after.lanes)
        block.operations[operation] += 1
