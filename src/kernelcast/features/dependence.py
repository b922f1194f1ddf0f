"""Which variables, and which ways out of a loop, depend on values that certain calls return."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.semicolons import split_for
from kernelcast.features.syntax.tree import Node, SyntaxTree

_GLOBAL = "global"
_ASSIGNMENTS = (kinds.BINARY, kinds.COMPOUND_ASSIGNMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What a function passes on of the values that certain calls within it return."""

    holds_call: bool = False
    """Whether it makes such a call, itself or through others."""
    result_depends: bool = False
    """Whether its result depends on one."""
    outputs: frozenset[int] = frozenset()
    """Positions of pointer parameters through which one is stored."""


@dataclass(slots=True)
class CallEffects:
    """Effects of all functions of a source."""

    tree: SyntaxTree
    """The source."""
    calls: Collection[int]
    """Keys of the calls whose values matter."""
    _known: dict[int, Effects] = field(default_factory=dict)

    def of(self, call: Node) -> Effects:
        """Give what a call passes on; nothing for builtins that do not matter."""
        if call.key in self.calls:
            return Effects(holds_call=True, result_depends=True)
        function = self.tree.definition_of(call)
        if function is None:
            return Effects()
        if function.key not in self._known:
            self._known[function.key] = Effects()  # a call of itself adds nothing
            self._known[function.key] = self._look_into(function)
        return self._known[function.key]

    def _look_into(self, function: Node) -> Effects:
        if not holds_call(function, self):
            return Effects()
        flow = Dependence(self, [function.children[-1]])
        parameters = [one for one in function.children if one.kind == kinds.PARAMETER]
        stored = (n for n, one in enumerate(parameters) if one.key in flow.variables)
        return Effects(
            holds_call=True, result_depends=flow.result_depends, outputs=frozenset(stored)
        )


def holds_call(node: Node, effects: CallEffects) -> bool:
    """Tell whether one of the calls is made in or below a node."""
    return any(one.kind == kinds.CALL and effects.of(one).holds_call for one in node.walk())


class Dependence:
    """Follows values through the statements of a loop's body or of a function.

    Statements are followed again and again until nothing is added, so that what an iteration
    leaves behind reaches the next one. What is assigned where a condition depends on the values
    depends on them, too.

    Parameters
    ----------
    statements : sequence of Node
        What is executed over and over, or once.

    Attributes
    ----------
    variables : set of int
        Keys of variables, arrays and pointers' targets that depend on the values. What is stored
        into global memory is not followed.
    leaves, result_depends : bool
        Whether a jump out of the statements, or the result of a `return`, does.
    """

    def __init__(self, effects: CallEffects, statements: Sequence[Node]) -> None:
        self._effects = effects
        self.variables: set[int] = set()
        self.leaves = self.result_depends = False
        self._skips = False
        known = -1
        while known < len(self.variables):
            known = len(self.variables)
            self._skips = False
            for one in statements:
                self._follow(one, decided=self._skips, inside=0)

    def depends(self, node: Node) -> bool:
        """Tell whether an expression's value depends on the values."""
        return any(
            (one.kind == kinds.CALL and self._effects.of(one).result_depends)
            or (one.kind == kinds.DECLARATION_REFERENCE and one.referenced_key in self.variables)
            for one in node.walk()
        )

    def _follow(self, node: Node, *, decided: bool, inside: int) -> None:
        """Follow a statement.

        `decided` says that the values decide whether it is executed, `inside` by how many loops
        and switches a `break` would not leave the statements as a whole.
        """
        handler = self._HANDLERS.get(node.kind)
        if handler is not None:
            handler(self, node, decided, inside)
            return
        self._note_changes(node, decided=decided)
        for child in node.children:
            self._follow(child, decided=decided, inside=inside)

    def _compound(self, node: Node, decided: bool, inside: int) -> None:
        for child in node.children:
            self._follow(child, decided=decided or self._skips, inside=inside)

    def _choice(self, node: Node, decided: bool, inside: int) -> None:
        test, *arms = node.children
        self._follow(test, decided=decided, inside=inside)
        within = inside + (node.kind == kinds.SWITCH)
        for arm in arms:
            self._follow(arm, decided=decided or self.depends(test), inside=within)

    def _loop(self, node: Node, decided: bool, inside: int) -> None:
        test = condition_of(node)
        within = decided or (test is not None and self.depends(test))
        skips, self._skips = self._skips, False
        for child in node.children:
            self._follow(child, decided=within, inside=inside + 1)
        self._skips = skips

    def _jump(self, node: Node, decided: bool, inside: int) -> None:
        for child in node.children:
            self._follow(child, decided=decided, inside=inside)
            self.result_depends |= node.kind == kinds.RETURN and self.depends(child)
        if not decided:
            return
        self.result_depends |= node.kind == kinds.RETURN
        if node.kind == kinds.CONTINUE:
            self._skips = True
        elif node.kind != kinds.BREAK or not inside:
            self.leaves = True

    def _note_changes(self, node: Node, *, decided: bool) -> None:
        """Add the variables that an expression or declaration makes depend on the values."""
        if node.kind == kinds.VARIABLE:
            if any(decided or self.depends(child) for child in node.children):
                self.variables.add(node.key)
        elif node.kind in _ASSIGNMENTS:
            is_plain = node.kind == kinds.COMPOUND_ASSIGNMENT or node.operator == kinds.ASSIGN
            if is_plain and (decided or self.depends(node.children[1])):
                self._add_target(node.children[0])
        elif node.kind == kinds.UNARY and node.operator in kinds.STEPS:
            if decided:
                self._add_target(node.children[0])
        elif node.kind == kinds.CALL:
            self._note_outputs(node, decided=decided)

    def _note_outputs(self, call: Node, *, decided: bool) -> None:
        """Add what a function may store through its arguments."""
        arguments = call.children[1:]
        outputs = self._effects.of(call).outputs
        stores_any = self._effects.tree.definition_of(call) is not None and (
            decided or any(map(self.depends, arguments))
        )
        for position, argument in enumerate(arguments):
            target = argument.type.target
            if target is None or target.space == _GLOBAL or target.is_const:
                continue
            if position in outputs or stores_any:
                self._add_target(argument)

    def _add_target(self, place: Node) -> None:
        """Add the variable in which, or to which, an expression points; not global memory."""
        if place.type.space == _GLOBAL:
            return
        for one in place.walk():
            if one.kind == kinds.DECLARATION_REFERENCE:
                self.variables.add(one.referenced_key)
                return

    _HANDLERS: ClassVar[dict[int, Callable[["Dependence", Node, bool, int], None]]] = {
        kinds.COMPOUND: _compound,
        kinds.IF: _choice,
        kinds.SWITCH: _choice,
        kinds.CONDITIONAL: _choice,
        **dict.fromkeys(kinds.LOOPS, _loop),
        **dict.fromkeys(kinds.JUMPS, _jump),
    }


def condition_of(loop: Node) -> Node | None:
    """Give a loop's condition; None where there is none."""
    if loop.kind == kinds.FOR:
        return split_for(loop).condition
    return loop.children[-1 if loop.kind == kinds.DO else 0]


def list_reached(tree: SyntaxTree, roots: list[Node]) -> list[Node]:
    """Give some statements or functions, and all functions that they call."""
    found = {one.key: one for one in roots}
    waiting = list(roots)
    while waiting:
        for one in waiting.pop().walk():
            called = tree.definition_of(one) if one.kind == kinds.CALL else None
            if called is not None and called.key not in found:
                found[called.key] = called
                waiting.append(called)
    return list(found.values())
