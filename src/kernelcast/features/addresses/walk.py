"""Follows a kernel from its first statement to its last."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from kernelcast.expressions import (
    FALSE,
    TRUE,
    UNKNOWN,
    Condition,
    Symbol,
    SymbolKind,
    Unknown,
    conjunction,
    negation,
)  # fmt: skip
from kernelcast.expressions.accesses import LoopFacts
from kernelcast.features.addresses.evaluation import Evaluator
from kernelcast.features.addresses.floats import may_decide
from kernelcast.features.addresses.frames import Frame, Target
from kernelcast.features.addresses.loop_facts import (
    Loop,
    LoopReader,
    describe,
    describe_do,
    describe_test,
    find_labels,
)  # fmt: skip
from kernelcast.features.addresses.loops import find_induction, forget_changes, leave_loop
from kernelcast.features.addresses.objects import give_argument
from kernelcast.features.addresses.slots import forget_symbols
from kernelcast.features.addresses.state import Findings, State, TooLargeError, merge_values
from kernelcast.features.addresses.values import (
    Opaque,
    Value,
    as_number,
    blur,
    merge,
    sources_of,
)  # fmt: skip
from kernelcast.features.blocks.model import BlockList
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.semicolons import split_for
from kernelcast.features.syntax.tree import Node, SyntaxTree
from kernelcast.features.syntax.types import TypeClass

_BUDGET = 120_000
"""Expressions evaluated per kernel: about a second."""


class AddressWalk:
    """Follows one kernel with the functions it calls.

    Parameters
    ----------
    blocks : BlockList
        Blocks and sites of the kernel.
    known_buffers : frozenset of str
        Parameters whose contents are known and never written.
    """

    def __init__(
        self, tree: SyntaxTree, blocks: BlockList, known_buffers: frozenset[str] = frozenset()
    ) -> None:
        self.findings = Findings(tree, blocks, _BUDGET, known_buffers)
        self._evaluator = Evaluator(self.findings, self._inline)
        self._frames: list[Frame] = []
        self._loops = LoopReader()
        self._loop_count = 0
        self._floats_decide: bool | None = None

    def follow(self, kernel: Node) -> None:
        """Follow a kernel; accesses and gaps are in `findings` then."""
        state = State()
        for parameter in kernel.children:
            if parameter.kind == kinds.PARAMETER:
                state.values[parameter.key] = self._argument(parameter)
        self._frames.append(Frame(kernel, 0, 0))
        gaps = self.findings.blocks.gaps
        try:
            self._statement(kernel.children[-1], state)
        except TooLargeError:
            gaps.append((kernel.line, "too large to be followed to its end"))
        finally:
            # They refer to each other; apart, they need not wait for Python's collector.
            del self._evaluator.objects, self._evaluator

    def _argument(self, parameter: Node) -> Value:
        info, name = parameter.type, parameter.spelling
        if info.type_class is TypeClass.UNSIGNED:
            most = (1 << info.bits) - 1
            names = (name, *(f"{name}.s{lane:x}" for lane in range(info.lanes)))
            self.findings.largest_unsigned |= dict.fromkeys(names, most)
        return give_argument(name, info)

    def _statement(self, node: Node, state: State) -> None:
        if not state.is_reached and node.kind not in (kinds.COMPOUND, kinds.LABEL, kinds.CASE,
                                                      kinds.DEFAULT):  # fmt: skip
            return
        if node.kind < kinds.FIRST_EXPRESSION or node.kind > kinds.LAST_EXPRESSION:
            self.findings.note_reached(node, state)
        handler = self._HANDLERS.get(node.kind)
        if handler is not None:
            handler(self, node, state)
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
        left = self._frames[-1].left
        self._statement(then_node, then)
        if rest:
            self._statement(rest[0], otherwise)
        state.join((then, otherwise), may_be_lost=self._frames[-1].left > left)

    def _for(self, node: Node, state: State) -> None:
        initial = split_for(node).initial
        if initial is not None:
            self._statement(initial, state)
        self._loop(node, state)

    def _loop(self, node: Node, state: State) -> None:
        """Follow a loop: what it changes first, then one iteration that stands for all."""
        findings = self.findings
        loop = self._loops.read(node, self._frames[-1].function)
        symbol = Symbol(SymbolKind.LOOP, self._name_loop(loop.node))
        with self._not_recording():
            induction = find_induction(
                loop.changes, symbol, state, self._evaluator, lambda one: self._run_once(loop, one),
                self._floats_may_decide,
            )  # fmt: skip
        inner = state.copy()
        inner.values |= induction.at_start
        target = Target(len(inner.guard), is_loop=True)
        frame, around = self._frames[-1], findings.around
        left, returned = frame.left, len(frame.returns)
        facts = self._describe(loop, symbol, inner)
        frame.targets.append(target)
        findings.around = (*around, facts)
        if findings.is_recording:
            findings.loops.append(facts)
        self._statement(loop.body, inner)
        self._finish_iteration(loop, inner, target)
        findings.around = around
        frame.targets.pop()
        has_returned = len(frame.returns) > returned
        frame.left = left + has_returned
        condition = Unknown(tuple(sorted(target.sources)))
        sources = sources_of(facts.condition, condition)
        count = facts.trip_count if facts.is_exact else None
        leave_loop(induction, symbol, count, sources, state)
        if loop.has_changing_test:
            with self._not_recording():
                self._evaluator.value(loop.tested, state)
        if has_returned:
            state.guard = (*state.guard, condition)

    def _floats_may_decide(self) -> bool:
        if self._floats_decide is None:
            self._floats_decide = may_decide(self.findings.tree, self._frames[0].function)
        return self._floats_decide

    def _finish_iteration(self, loop: Loop, inner: State, target: Target) -> None:
        """Run what follows a loop's body: the step, or the test of `do`."""
        begin = State(inner.values, inner.guard[: target.guard_depth])
        begin.join((*target.continues, inner), may_be_lost=False)
        begin.is_reached = True
        if loop.step is not None:
            self._evaluator.value(loop.step, begin)
        if loop.is_tested_last and loop.test is not None:
            self._evaluator.condition(loop.test, begin)
        inner.take(begin)

    def _run_once(self, loop: Loop, trial: State) -> None:
        """Run one iteration to see what it changes; nothing is recorded."""
        frame = self._frames[-1]
        kept = (self._loop_count, frame.left, len(frame.returns))
        target = Target(len(trial.guard), is_loop=True)
        frame.targets.append(target)
        if loop.test is not None and not loop.is_tested_last:
            self._evaluator.value(loop.test, trial)
        self._statement(loop.body, trial)
        self._finish_iteration(loop, trial, target)
        frame.targets.pop()
        self._loop_count, frame.left, returned = kept
        del frame.returns[returned:]

    @contextmanager
    def _not_recording(self) -> Iterator[None]:
        was_recording, self.findings.is_recording = self.findings.is_recording, False
        try:
            yield
        finally:
            self.findings.is_recording = was_recording

    def _describe(self, loop: Loop, symbol: Symbol, inner: State) -> LoopFacts:
        """Describe a loop, and record what its test accesses."""
        leaves, limits = loop.may_be_left, self.findings.largest_unsigned
        if loop.is_tested_last:
            again = self._condition_at_end(loop, inner)
            return describe_do(loop, symbol, again, leaves=leaves, limits=limits)
        if loop.test is None:
            return describe(loop, symbol, TRUE, leaves=leaves, limits=limits)
        if not loop.is_test_noted:
            condition = self._evaluator.condition(loop.test, inner)
            return describe(loop, symbol, condition, leaves=leaves, limits=limits)
        with self._not_recording():
            condition = self._evaluator.condition(loop.test, inner.copy())
        facts = describe(loop, symbol, condition, leaves=leaves, limits=limits)
        around = self.findings.around
        self.findings.around = (*around, describe_test(facts, symbol))
        self._evaluator.condition(loop.test, inner)
        self.findings.around = around
        return facts

    def _condition_at_end(self, loop: Loop, inner: State) -> Condition:
        """Give the condition on which a loop that is tested at its end runs once more."""
        if loop.test is None:
            return UNKNOWN
        constant = loop.test.constant
        if constant is not None:
            return TRUE if constant else FALSE
        trial = inner.copy()
        frame = self._frames[-1]
        kept = (self._loop_count, frame.left, len(frame.returns))
        target = Target(len(trial.guard), is_loop=True)
        frame.targets.append(target)
        with self._not_recording():
            self._statement(loop.body, trial)
            begin = State(trial.values, inner.guard)
            begin.join((*target.continues, trial), may_be_lost=False)
            begin.is_reached = True
            again = self._evaluator.condition(loop.test, begin)
        frame.targets.pop()
        self._loop_count, frame.left, returned = kept
        del frame.returns[returned:]
        return again

    def _name_loop(self, node: Node) -> str:
        self._loop_count += 1
        return f"{self._loop_count}:line {node.line}"

    def _switch(self, node: Node, state: State) -> None:
        """Run a switch's body once, entered at each label by the numbers of the labels."""
        number = as_number(self._evaluator.value(node.children[0], state))
        target = Target(len(state.guard), is_loop=False)
        target.entry, target.number = state.copy(), number
        target.labels = tuple(find_labels(node.children[-1]))
        frame = self._frames[-1]
        left = frame.left
        frame.targets.append(target)
        inner = state.copy()
        inner.is_reached = False
        self._statement(node.children[-1], inner)
        frame.targets.pop()
        paths = [*target.breaks, inner]
        if None not in target.labels:
            paths.append(state.copy(target.condition_of(None)))
        state.join(paths, may_be_lost=frame.left > left)

    def _labelled(self, node: Node, state: State) -> None:
        """Come to a label of a switch: from above, or from its beginning."""
        targets = self._frames[-1].targets
        target = next((one for one in reversed(targets) if not one.is_loop), None)
        if target is None or target.entry is None:
            state.is_reached = True
        else:
            value = node.children[0].constant if node.kind == kinds.CASE else None
            condition = target.condition_of(value if isinstance(value, int) else None)
            if node.kind == kinds.CASE and not isinstance(value, int):
                condition = UNKNOWN
            entered = target.entry.copy(condition)
            base = State(state.values, target.entry.guard)
            base.join((state, entered), may_be_lost=True)
            state.take(base)
        self._statement(node.children[-1], state)

    def _label(self, node: Node, state: State) -> None:
        state.guard = (*state.guard, UNKNOWN)
        forget_changes(self._frames[-1].function, state)
        state.is_reached = True
        self._statement(node.children[-1], state)

    def _return(self, node: Node, state: State) -> None:
        frame = self._frames[-1]
        value: Value = Opaque()
        if node.children:
            value = self._evaluator.value(node.children[0], state)
        loops = self.findings.around[frame.loop_depth :]
        end = state.copy()
        if any(target.is_loop for target in frame.targets):
            inner = frozenset(Symbol(SymbolKind.LOOP, loop.name) for loop in loops)
            value = forget_symbols(value, inner)
            end.values = {key: forget_symbols(one, inner) for key, one in end.values.items()}
            found = sources_of(*state.guard[frame.guard_depth :])
            end.guard = (*state.guard[: frame.guard_depth], Unknown(tuple(sorted(found))))
        frame.returns.append((end, value))
        self._note_exit(state, lambda _: True)
        frame.left += 1
        state.is_reached = False

    def _break(self, _: Node, state: State) -> None:
        frame = self._frames[-1]
        if frame.targets:
            target = frame.targets[-1]
            if target.is_loop:
                self._note_exit(state, lambda one: one is target)
                frame.left += 1
            else:
                target.breaks.append(state.copy())
        state.is_reached = False

    def _continue(self, _: Node, state: State) -> None:
        frame = self._frames[-1]
        for target in reversed(frame.targets):
            if target.is_loop:
                target.continues.append(state.copy())
                break
        frame.left += 1
        state.is_reached = False

    def _note_exit(self, state: State, is_left: Callable[[Target], bool]) -> None:
        """Note on which data it depends whether loops are left."""
        for target in self._frames[-1].targets:
            if target.is_loop and is_left(target):
                target.sources |= sources_of(*state.guard[target.guard_depth :])

    def _goto(self, node: Node, state: State) -> None:
        self.findings.note_gap(node, "goto: what follows is not followed exactly")
        state.guard = (*state.guard, UNKNOWN)
        forget_changes(self._frames[-1].function, state)

    def _inline(self, function: Node, arguments: list[Value], state: State) -> Value:
        """Run a helper function's body where it is called."""
        if any(frame.function.key == function.key for frame in self._frames):
            self._evaluator.objects.forget_targets(arguments, state)
            return blur(*arguments, reason=f"{function.spelling} calls itself")
        parameters = [one for one in function.children if one.kind == kinds.PARAMETER]
        for parameter, argument in zip(parameters, arguments, strict=False):
            state.values[parameter.key] = argument
        guard = state.guard
        frame = Frame(function, len(guard), len(self.findings.around))
        self._frames.append(frame)
        inner = state.copy()
        self._statement(function.children[-1], inner)
        self._frames.pop()
        ends = list(frame.returns)
        if inner.is_reached:
            ends.append((inner, Opaque(reason="a function without a value")))
        if not ends:
            return Opaque(reason="a function that does not return")
        conditions = [conjunction(*end.guard[len(guard) :]) for end, _ in ends]
        state.values = merge_values(conditions, [end.values for end, _ in ends])
        value = ends[-1][1]
        for condition, (_, earlier) in zip(conditions[-2::-1], ends[-2::-1], strict=True):
            value = merge(condition, earlier, value)
        return value

    _HANDLERS: ClassVar[dict[int, Callable[["AddressWalk", Node, State], None]]] = {
        kinds.COMPOUND: _compound,
        kinds.DECLARATION: _declare,
        kinds.IF: _if,
        kinds.FOR: _for,
        kinds.WHILE: _loop,
        kinds.DO: _loop,
        kinds.SWITCH: _switch,
        kinds.CASE: _labelled,
        kinds.DEFAULT: _labelled,
        kinds.LABEL: _label,
        kinds.RETURN: _return,
        kinds.BREAK: _break,
        kinds.CONTINUE: _continue,
        kinds.GOTO: _goto,
    }
