"""Follows a kernel from its first statement to its last."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kernelcast.features.addresses.evaluation import Evaluator
from kernelcast.features.addresses.loops import count_iterations, find_induction, leave_loop
from kernelcast.features.addresses.state import Findings, State, TooLargeError
from kernelcast.features.addresses.values import (
    ZERO, Lanes, Memory, Opaque, Pointer, Value, blur, merge,
)  # fmt: skip
from kernelcast.features.blocks.model import BlockList
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.semicolons import split_for
from kernelcast.features.syntax.tree import Node, SyntaxTree
from kernelcast.features.syntax.types import TypeClass, TypeInfo
from kernelcast.records.accesses import LoopFacts
from kernelcast.records.conditions import (
    TRUE, UNKNOWN, Condition, Unknown, conjunction, disjunction, equal, negation,
)  # fmt: skip
from kernelcast.records.operations import MemorySpace
from kernelcast.records.quasi_affine import Expr, Symbol, SymbolKind

_BUDGET = 120_000
"""Expressions evaluated per kernel: about a second."""


@dataclass(slots=True)
class _Frame:
    """A function that is being run."""

    function: Node
    guard_depth: int
    returns: list[tuple[Condition, Value]] = field(default_factory=list)
    exits: list[list[Condition]] = field(default_factory=list)
    """Per loop around, the conditions under which an iteration leaves it."""


class AddressWalk:
    """Follows one kernel with the functions it calls.

    Parameters
    ----------
    tree : SyntaxTree
        The unit.
    blocks : BlockList
        Blocks and sites of the kernel.
    """

    def __init__(self, tree: SyntaxTree, blocks: BlockList) -> None:
        self.findings = Findings(tree, blocks, _BUDGET)
        self._evaluator = Evaluator(self.findings, self._inline)
        self._frames: list[_Frame] = []
        self._loop_count = 0
        self._handlers: dict[int, Callable[[Node, State], None]] = {
            kinds.COMPOUND: self._compound,
            kinds.DECLARATION: self._declare,
            kinds.IF: self._if,
            kinds.FOR: self._for,
            kinds.WHILE: self._while,
            kinds.DO: self._do,
            kinds.SWITCH: self._switch,
            kinds.CASE: self._labelled,
            kinds.DEFAULT: self._labelled,
            kinds.LABEL: self._labelled,
            kinds.RETURN: self._return,
            kinds.BREAK: self._leave,
            kinds.CONTINUE: self._skip,
            kinds.GOTO: self._goto,
        }

    def follow(self, kernel: Node) -> None:
        """Follow a kernel; accesses and gaps are in `findings` then."""
        state = State()
        for parameter in kernel.children:
            if parameter.kind == kinds.PARAMETER:
                state.values[parameter.key] = self._argument(parameter)
        self._frames.append(_Frame(kernel, 0))
        gaps = self.findings.blocks.gaps
        try:
            self._statement(kernel.children[-1], state)
        except TooLargeError:
            gaps.append((kernel.line, "too large to be followed to its end"))
        except RecursionError:
            gaps.append((kernel.line, "nested too deeply to be followed"))

    def _argument(self, parameter: Node) -> Value:
        """Give a kernel argument's value: a buffer or a number that is known at launch."""
        info, name = parameter.type, parameter.spelling
        if info.type_class is TypeClass.POINTER and info.target is not None:
            return Pointer(Memory(name, MemorySpace(info.target.space)), ZERO)
        if info.type_class is TypeClass.UNSIGNED:
            self.findings.unsigned_scalars.add(name)
        if info.is_integer and info.is_vector:
            return Lanes(tuple(_scalar(f"{name}.s{lane:x}") for lane in range(info.lanes)))
        if info.is_integer:
            return _scalar(name)
        if info.type_class is TypeClass.RECORD:
            return Pointer(Memory(name, MemorySpace.PRIVATE), ZERO)
        return Opaque(reason="a floating-point number")

    def _statement(self, node: Node, state: State) -> None:
        if not state.is_reached and node.kind not in (kinds.COMPOUND, kinds.LABEL, kinds.CASE,
                                                      kinds.DEFAULT):  # fmt: skip
            return
        if node.kind < kinds.FIRST_EXPRESSION or node.kind > kinds.LAST_EXPRESSION:
            self.findings.note_reached(node, state)
        handler = self._handlers.get(node.kind)
        if handler is not None:
            handler(node, state)
        elif kinds.FIRST_EXPRESSION <= node.kind <= kinds.LAST_EXPRESSION:
            self._evaluator.value(node, state)
        else:
            for child in node.children:
                self._statement(child, state)

    def _compound(self, node: Node, state: State) -> None:
        for child in node.children:
            self._statement(child, state)

    def _declare(self, node: Node, state: State) -> None:
        for variable in node.children:
            if variable.kind == kinds.VARIABLE:
                self._evaluator.declare(variable, state)

    def _if(self, node: Node, state: State) -> None:
        test, then_node, *rest = node.children
        known = test.constant
        if known is not None:
            if known:
                self._statement(then_node, state)
            elif rest:
                self._statement(rest[0], state)
            return
        condition = self._evaluator.condition(test, state)
        then, otherwise = state.copy(condition), state.copy(negation(condition))
        self._statement(then_node, then)
        if rest:
            self._statement(rest[0], otherwise)
        join(state, condition, then, otherwise)

    def _for(self, node: Node, state: State) -> None:
        parts = split_for(node)
        if parts.initial is not None:
            self._statement(parts.initial, state)
        self._loop(node, parts.condition, parts.body, parts.step, state)

    def _while(self, node: Node, state: State) -> None:
        self._loop(node, node.children[0], node.children[-1], None, state)

    def _do(self, node: Node, state: State) -> None:
        self._loop(node, node.children[-1], node.children[0], None, state, is_tested_last=True)

    def _loop(
        self, node: Node, test: Node | None, body: Node, step: Node | None, state: State, *,
        is_tested_last: bool = False,
    ) -> None:  # fmt: skip
        symbol = Symbol(SymbolKind.LOOP, self._name_loop(node))
        induction = find_induction(node, symbol, state, self._evaluator, self.findings)
        inner = state.copy()
        inner.values.update(induction.at_start)
        frame = self._frames[-1]
        frame.exits.append([])
        returned = len(frame.returns)
        if is_tested_last:
            loop = self._facts_of_do(node, test, symbol, inner, body)
        else:
            condition = TRUE if test is None else self._condition_in_loop(test, inner, node, symbol)
            loop = self._facts(node, condition, symbol, self._may_leave(body))
        around = self.findings.around
        self.findings.around = (*around, loop)
        if self.findings.is_recording:
            self.findings.loops.append(loop)
        if is_tested_last and test is not None:
            self._statement(body, inner)
            self._evaluator.condition(test, inner)
        else:
            self._statement(body, inner)
            inner.is_reached = True
            if step is not None:
                self._evaluator.value(step, inner)
        self.findings.around = around
        frame.exits.pop()
        leave_loop(induction, loop.trip_count if loop.is_exact else None, state)
        if len(frame.returns) > returned:
            state.guard = (*state.guard, UNKNOWN)

    def _condition_in_loop(
        self, test: Node, inner: State, node: Node, symbol: Symbol
    ) -> Condition:
        """Evaluate a condition, whose own accesses run once more than the body."""
        around = self.findings.around
        loop = LoopFacts(name=symbol.name, line=node.line, condition=UNKNOWN, trip_count=None,
                         is_exact=False)  # fmt: skip
        self.findings.around = (*around, loop)
        condition = self._evaluator.condition(test, inner)
        self.findings.around = around
        return condition

    def _facts_of_do(
        self, node: Node, test: Node | None, symbol: Symbol, inner: State, body: Node
    ) -> LoopFacts:
        """Describe a loop that is tested at its end: its first iteration always runs."""
        was_recording, self.findings.is_recording = self.findings.is_recording, False
        trial = inner.copy()
        self._statement(body, trial)
        trial.is_reached = True
        again = UNKNOWN if test is None else self._evaluator.condition(test, trial)
        self.findings.is_recording = was_recording
        if test is not None and test.constant is not None:
            again = TRUE if test.constant else equal(1, 0)
        earlier = again.substitute({symbol: Expr.symbol(symbol) - 1})
        condition = disjunction(equal(Expr.symbol(symbol), 0), earlier)
        count, is_exact = count_iterations(again, symbol)
        if again == equal(1, 0):
            count, is_exact = Expr.constant(0), True
        total = None if count is None else count + 1
        leaves = self._may_leave(body)
        return LoopFacts(name=symbol.name, line=node.line, condition=condition, trip_count=total,
                         is_exact=is_exact and not leaves)  # fmt: skip

    def _facts(
        self, node: Node, condition: Condition, symbol: Symbol, leaves: bool
    ) -> LoopFacts:
        count, is_exact = count_iterations(condition, symbol)
        is_exact = condition.is_exact and condition != TRUE and not leaves and (
            is_exact or count is None
        )  # fmt: skip
        return LoopFacts(
            name=symbol.name, line=node.line, condition=condition, trip_count=count,
            is_exact=is_exact,
        )  # fmt: skip

    def _may_leave(self, body: Node) -> bool:
        """Tell whether a loop's body holds a jump out of it."""
        stack = [(body, False)]
        while stack:
            node, is_inner = stack.pop()
            if node.kind in (kinds.RETURN, kinds.GOTO):
                return True
            if node.kind == kinds.BREAK and not is_inner:
                return True
            inside = is_inner or node.kind in kinds.LOOPS or node.kind == kinds.SWITCH
            stack.extend((child, inside) for child in node.children)
        return False

    def _name_loop(self, node: Node) -> str:
        self._loop_count += 1
        return f"{self._loop_count}:line {node.line}"

    def _switch(self, node: Node, state: State) -> None:
        """Run a switch's body as if each statement in it may or may not be run."""
        self._evaluator.value(node.children[0], state)
        inner = state.copy(UNKNOWN)
        self._statement(node.children[-1], inner)
        inner.is_reached = True
        join(state, UNKNOWN, inner, state.copy())

    def _labelled(self, node: Node, state: State) -> None:
        state.is_reached = True
        self._statement(node.children[-1], state)

    def _return(self, node: Node, state: State) -> None:
        frame = self._frames[-1]
        value: Value = Opaque()
        if node.children:
            value = self._evaluator.value(node.children[0], state)
        since = state.guard[frame.guard_depth :]
        frame.returns.append((conjunction(*since) if not frame.exits else UNKNOWN, value))
        state.is_reached = False

    def _leave(self, _: Node, state: State) -> None:
        state.is_reached = False

    def _skip(self, _: Node, state: State) -> None:
        state.is_reached = False

    def _goto(self, node: Node, state: State) -> None:
        self.findings.blocks.gaps.append((node.line, "goto: what follows is not followed exactly"))
        state.guard = (*state.guard, UNKNOWN)

    def _inline(self, function: Node, arguments: list[Value], state: State) -> Value:
        """Run a helper function's body where it is called."""
        if any(frame.function.key == function.key for frame in self._frames):
            return blur(*arguments, reason=f"{function.spelling} calls itself")
        parameters = [one for one in function.children if one.kind == kinds.PARAMETER]
        for parameter, argument in zip(parameters, arguments, strict=False):
            state.values[parameter.key] = argument
        guard = state.guard
        frame = _Frame(function, len(guard))
        self._frames.append(frame)
        self._statement(function.children[-1], state)
        self._frames.pop()
        state.guard, state.is_reached = guard, True
        return _returned(frame.returns)


def join(state: State, condition: Condition, then: State, otherwise: State) -> None:
    """Make a state that of what follows a branch."""
    if not (then.is_reached and otherwise.is_reached):
        state.take(then if then.is_reached else otherwise)
        return
    depth = len(state.guard)
    for key in then.values.keys() | otherwise.values.keys():
        one, two = then.values.get(key), otherwise.values.get(key)
        if one is None or two is None:
            continue  # declared within one side
        state.values[key] = one if one is two else merge(condition, one, two)
    # `depth + 1` conditions lead into each side; what is beyond came from jumps within it.
    skip = 0 if condition == TRUE else 1
    extra = (then.guard[depth + skip :], otherwise.guard[depth + skip :])
    if any(extra):
        state.guard = (
            *state.guard,
            disjunction(
                conjunction(condition, *extra[0]), conjunction(negation(condition), *extra[1])
            ),
        )


def _returned(returns: list[tuple[Condition, Value]]) -> Value:
    """Give what a function returns, by the conditions of its return statements."""
    if not returns:
        return Opaque(reason="a function without a value")
    value = returns[-1][1]
    for condition, earlier in reversed(returns[:-1]):
        value = merge(condition, earlier, value)
    return value


def _scalar(name: str) -> Expr:
    return Expr.symbol(Symbol(SymbolKind.SCALAR, name))


