"""Tells which addresses pass through 32 bits, so that compilers do not see neighbours side by side.

Ids have 64 bits, and so have addresses. Between them indices are often `int` or `uint`, and what is
cut down to 32 bits and widened again may wrap: Intel's compiler then no longer knows that the next
work-item's address is the next one, and gathers. A sum of `int` with another number of 32 bits must
not wrap, and is followed, unless a loop's counter takes that number away from it: it is widened on
its own. Seen in the machine code of small kernels (with version 0.2).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import ClassVar

from kernelcast.features.blocks.model import BlockList, Site
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.lvalues import base_object
from kernelcast.features.syntax.semicolons import split_for
from kernelcast.features.syntax.tree import Node, SyntaxTree
from kernelcast.features.syntax.types import TypeClass, TypeInfo

_IDS = frozenset(("get_global_id", "get_local_id"))
_ORDERS = kinds.COMPARISONS - {kinds.EQUAL, kinds.NOT_EQUAL}
_INT_BITS = 32


class _Way(IntEnum):
    """How the first id reaches a number; the later, the worse."""

    NONE = 0
    WHOLE = 1
    """With all its bits."""
    SUM = 2
    """Cut, and added to another number of 32 bits."""
    CUT = 3
    """Cut, but for constants that are added."""
    LOST = 4
    """Without a sign, or cut after sums of 64 bits."""


@dataclass(frozen=True, slots=True)
class _Form:
    """What a number is made of."""

    way: _Way = _Way.NONE
    ids: frozenset[str] = frozenset()
    is_plain: bool = True
    """Whether only constants were added to the id."""
    has_number: bool = False
    """Whether it holds a number that has 32 bits by itself."""
    has_counter: bool = False
    """Whether it changes in a loop that is not written out."""


_CONSTANT, _OTHER_ID, _NUMBER = _Form(), _Form(is_plain=False), _Form(has_number=True)


def find_narrowed(
    tree: SyntaxTree, kernel: Node, blocks: BlockList, looping: Collection[int]
) -> frozenset[int]:
    """Give the sites of a kernel whose addresses compilers do not see side by side.

    Parameters
    ----------
    looping : collection of int
        Sites within loops.
    """
    forms = _Forms(tree, kernel)
    sites = [site for block in blocks.blocks for site in block.sites if not site.is_atomic]
    found = {site.id: forms.follow(site) for site in sites}
    whole = {
        name
        for form in found.values()
        if form.way is _Way.WHOLE or (form.way >= _Way.CUT and not form.has_counter)
        for name in form.ids
    }
    return frozenset(
        site
        for site, form in found.items()
        if form.way >= _Way.CUT
        # Where an id is needed whole as well, sums of its lower half are no longer followed.
        or (form.way is _Way.SUM and form.ids & whole and (form.has_counter or site not in looping))
    )


class _Forms:
    """Finds the forms of a kernel's expressions."""

    def __init__(self, tree: SyntaxTree, kernel: Node) -> None:
        self._tree = tree
        self._kernel = kernel
        self._variables: dict[int, _Form] = {}

    def follow(self, site: Site) -> _Form:
        """Give the form of a site's address."""
        node = site.node
        if site.pointer is not None:
            return self._combine_all(node.children[1:] if node.kind == kinds.CALL else [node])
        return self._address(node)

    @cached_property
    def _functions(self) -> list[Node]:
        found, waiting = {self._kernel.key: self._kernel}, [self._kernel]
        while waiting:
            for node in waiting.pop().walk():
                called = self._tree.definition_of(node) if node.kind == kinds.CALL else None
                if called is not None and called.key not in found:
                    found[called.key] = called
                    waiting.append(called)
        return [*found.values()]

    @cached_property
    def _values(self) -> dict[int, list[Node]]:
        """What variables are set to, by their declarations; arguments of helpers too."""
        found: dict[int, list[Node]] = defaultdict(list)
        for node in (one for function in self._functions for one in function.walk()):
            if node.kind == kinds.VARIABLE and node.children:
                found[node.key].append(node.children[-1])
            elif node.kind == kinds.BINARY and node.operator == kinds.ASSIGN:
                found[base_object(node.children[0]).referenced_key].append(node.children[1])
            elif node.kind == kinds.CALL:
                called = self._tree.definition_of(node)
                given = [] if called is None else called.children
                names = [one for one in given if one.kind == kinds.PARAMETER]
                for name, value in zip(names, node.children[1:], strict=False):
                    found[name.key].append(value)
        return found

    @cached_property
    def _stepping(self) -> dict[int, bool]:
        """Variables that are added to, and whether loops of theirs are written out."""
        found: dict[int, bool] = {}
        for function in self._functions:
            for node in function.walk():
                is_step = node.kind == kinds.UNARY and node.operator in kinds.STEPS
                if is_step or node.kind == kinds.COMPOUND_ASSIGNMENT:
                    found.setdefault(base_object(node.children[0]).referenced_key, False)
                if node.kind == kinds.FOR and _is_written_out(node):
                    step = split_for(node).step
                    found |= {one.referenced_key: True for one in step.walk()} if step else {}
        return found

    @cached_property
    def _references(self) -> Counter[int]:
        """How often variables are named."""
        nodes = (one for function in self._functions for one in function.walk())
        return Counter(
            one.referenced_key for one in nodes if one.kind == kinds.DECLARATION_REFERENCE
        )

    @cached_property
    def _has_lower_bounds(self) -> bool:
        """Whether cut ids are compared with constants: what is not negative has no sign to keep."""
        return any(
            node.kind == kinds.BINARY
            and node.operator in _ORDERS
            and any(child.constant is not None for child in node.children)
            and any(self._form(child).way is _Way.CUT for child in node.children)
            for function in self._functions
            for node in function.walk()
        )

    def _address(self, node: Node) -> _Form:
        """Give the form of the address of an object."""
        node = base_object(node)
        if node.kind == kinds.UNARY and node.operator == kinds.DEREFERENCE:
            return self._form(node.children[0])
        if node.kind == kinds.MEMBER_REFERENCE and node.children:
            return self._address(node.children[0])
        if node.kind != kinds.SUBSCRIPT:
            return self._form(node) if node.type.type_class is TypeClass.POINTER else _CONSTANT
        array, index = node.children[0], node.children[-1]
        moved = _widen(self._form(index), index.type)
        object_ = base_object(array)
        if object_.type.type_class is TypeClass.ARRAY:
            # The size of an array that is declared bounds its index.
            if moved.way is _Way.CUT and moved.is_plain:
                moved = replace(moved, way=_Way.NONE)
            return _add(self._address(object_), moved)
        return _add(self._form(array), moved)

    def _form(self, node: Node) -> _Form:
        if node.constant is not None:
            return _CONSTANT
        handler = self._HANDLERS.get(node.kind)
        if handler is not None:
            return handler(self, node)
        child = node.children[-1] if node.children else None
        return _CONSTANT if child is None else _convert(self._form(child), child.type, node.type)

    def _element(self, node: Node) -> _Form:
        return self._address(node) if node.type.type_class is TypeClass.ARRAY else _NUMBER

    def _unary(self, node: Node) -> _Form:
        if node.operator == kinds.DEREFERENCE:
            return _NUMBER
        is_address = node.operator == kinds.ADDRESS_OF
        return (self._address if is_address else self._form)(node.children[0])

    def _conditional(self, node: Node) -> _Form:
        return self._combine_all(node.children[-2:])

    def _binary(self, node: Node) -> _Form:
        if node.operator in (kinds.ASSIGN, kinds.COMMA):
            return self._form(node.children[1])
        one, two = (_widen(self._form(child), child.type)
                    if node.type.type_class is TypeClass.POINTER else self._form(child)
                    for child in node.children)  # fmt: skip
        if two.way > one.way:
            one, two = two, one
        is_sum = node.operator in (kinds.ADD, kinds.SUBTRACT)
        if is_sum and two == _CONSTANT:
            return one
        both = replace(_add(one, two), is_plain=False)
        if both.way is _Way.NONE and not is_sum and _is_power(node):
            return replace(both, has_number=True)  # what is shifted does not meet what is added
        if node.type.bits != _INT_BITS or both.way in (_Way.NONE, _Way.LOST):
            return both
        if node.type.type_class is TypeClass.UNSIGNED:
            return replace(both, way=_Way.LOST)
        if both.way is _Way.CUT and two != _CONSTANT and not two.has_counter:
            return replace(both, way=_Way.SUM if two.has_number else _Way.LOST)
        return both

    def _call(self, node: Node) -> _Form:
        if node.spelling in _IDS and node.children[-1].constant == 0:
            return _Form(_Way.WHOLE, frozenset((node.spelling,)))
        if node.spelling.startswith("get_"):
            return _OTHER_ID
        definition = self._tree.definition_of(node)
        if definition is not None:
            returned = (one for one in definition.walk() if one.kind == kinds.RETURN)
            return self._combine_all(one.children[0] for one in returned if one.children)
        return self._combine_all(node.children[1:])

    def _variable(self, node: Node) -> _Form:
        key = node.referenced_key
        if key not in self._variables:
            self._variables[key] = _CONSTANT  # what it is set to may be made of itself
            self._variables[key] = self._follow_variable(key, node.type)
        return self._variables[key]

    def _follow_variable(self, key: int, info: TypeInfo) -> _Form:
        values = self._values.get(key)
        if values is None:
            return _CONSTANT if info.type_class in (TypeClass.POINTER, TypeClass.ARRAY) else _NUMBER
        found = self._combine_all(values)
        is_written_out = self._stepping.get(key)
        if is_written_out is None:
            is_kept = info.bits > _INT_BITS and self._references[key] > 1
            is_whole = is_kept and found.way is _Way.CUT and not self._has_lower_bounds
            return replace(found, way=_Way.WHOLE) if is_whole else found
        if found.way is _Way.NONE:
            return replace(found, has_counter=not is_written_out)
        return replace(found, way=_Way.SUM) if found.way is _Way.CUT and info.is_integer else found

    def _combine_all(self, nodes: Iterable[Node]) -> _Form:
        found = _CONSTANT
        for node in nodes:
            found = _add(found, self._form(node))
        return found

    _HANDLERS: ClassVar[dict[int, Callable[["_Forms", Node], _Form]]] = {
        kinds.BINARY: _binary, kinds.CALL: _call, kinds.CONDITIONAL: _conditional,
        kinds.DECLARATION_REFERENCE: _variable, kinds.MEMBER_REFERENCE: _element,
        kinds.SUBSCRIPT: _element, kinds.UNARY: _unary,
    }  # fmt: skip


def _is_power(product: Node) -> bool:
    """Tell whether a number is multiplied by a power of two."""
    factors = [child.constant for child in product.children]
    return product.operator in (kinds.SHIFT_LEFT, kinds.MULTIPLY) and any(
        isinstance(one, int) and one > 0 and not one & (one - 1) for one in factors
    )


def _add(one: _Form, two: _Form) -> _Form:
    is_plain = (one == _CONSTANT or two == _CONSTANT) and one.is_plain and two.is_plain
    return _Form(
        max(one.way, two.way), one.ids | two.ids, is_plain,
        one.has_number or two.has_number, one.has_counter or two.has_counter,
    )  # fmt: skip


def _convert(form: _Form, before: TypeInfo, after: TypeInfo) -> _Form:
    if not after.is_integer or after.is_vector or before.bits == after.bits:
        return form
    if after.bits > before.bits:
        return _widen(form, before)
    if form.way is _Way.NONE:
        return form
    is_cut = after.type_class is TypeClass.SIGNED and form.is_plain and form.way is _Way.WHOLE
    return replace(form, way=_Way.CUT if is_cut else _Way.LOST)


def _widen(form: _Form, info: TypeInfo) -> _Form:
    is_unsigned = info.type_class is TypeClass.UNSIGNED and info.bits <= _INT_BITS
    return replace(form, way=_Way.LOST) if is_unsigned and form.way is not _Way.NONE else form


def _is_written_out(loop: Node) -> bool:
    """Tell whether a loop's bounds are constants, so that its counter is one in each iteration."""
    condition, initial = split_for(loop).condition, split_for(loop).initial
    if condition is None or initial is None or condition.kind != kinds.BINARY:
        return False
    starts = [
        one.children[-1] for one in initial.walk() if one.kind == kinds.VARIABLE and one.children
    ]
    return any(one.constant is not None for one in condition.children) and all(
        one.constant is not None for one in starts
    )
