import pickle
import subprocess
from base64 import b64encode
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.compiling import cache, inlining
from kernelcast.expressions.accesses import AccessKind, AddressPattern
from kernelcast.features.analysis import compile_program, compile_source, infer_accesses, read_facts
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import summarise
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.errors import CompileError, KernelcastError, KernelNotFoundError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import MemorySpace, OperationKind, add_weighted
from support.kernel_facts import facts_of

SOURCE = """
kernel void k(global const float *restrict x, global float *y, constant float *c, float f,
                  local float *t, uint n) {
  local int shared[4][8];
  size_t i = get_global_id(0);
  if (i < n) { y[i] = x[i] * f + c[2]; t[0] = 1; shared[1][2] = 3; }
}
kernel void other(global int *a) { a[0]++; }
"""


def test_parameters_say_what_they_are() -> None:
    """Gives space, qualifiers, width, and whether each is read or written; OpenCL C 2.0's atomic
    types are what they hold."""
    facts = facts_of(SOURCE)
    x, y, c, f, t, n = facts.parameters
    assert (x.space, x.is_const, x.is_restrict) == (MemorySpace.GLOBAL, True, True)
    assert x.element_bytes == 4
    assert [one.is_read for one in (x, y, c, t)] == [True, False, True, False]
    assert [one.is_written for one in (x, y, c, t)] == [False, True, False, True]
    assert (c.space, t.space) == (MemorySpace.CONSTANT, MemorySpace.LOCAL)
    assert [one.is_pointer for one in (f, n)] == [False, False]
    atomic = facts_of("""kernel void k(global const float *x, global atomic_uint *bins) {
        local atomic_int most;
        atomic_fetch_add(&bins[(uint)x[get_global_id(0)]], 1u);
        atomic_fetch_max(&most, 3);
    }""")
    bins = atomic.parameters[1]
    assert (bins.space, bins.element_bytes) == (MemorySpace.GLOBAL, 4)
    assert (bins.is_read, bins.is_written) == (True, True)
    assert ({one.bytes for one in atomic.accesses}, atomic.local_bytes) == ({4}, 4)


@pytest.mark.parametrize("kept", [b"cut", pickle.dumps(subprocess.run), b""])
def test_kept_facts_that_are_none_are_read_anew(
    kept: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that broke, or hold what is no part of facts, cost no answer and make nothing."""
    kernel = Kernel(name="other", source=f"{SOURCE}// {len(kept)}")
    compile_program(kernel)
    monkeypatch.setattr(cache, "read", lambda _: {"facts": b64encode(kept).decode()})
    monkeypatch.setattr(cache, "write", lambda *_: None)
    assert [one.name for one in read_facts(kernel).parameters] == ["a"]


def test_a_kernel_that_is_not_there_is_named() -> None:
    with pytest.raises(KernelNotFoundError, match="its kernels are: k, other"):
        read_facts(Kernel(name="absent", source=SOURCE))
    assert infer_accesses(Kernel(name="absent", source=SOURCE), 1) == (None,)


def test_a_source_with_errors_has_no_facts() -> None:
    """Hands on what the compiler says, with the name of the source."""
    source = "kernel void k(global int *a) { a[1] = 2; a[2] = 3 +; }"
    with pytest.raises(CompileError, match=r"one\.cl:1:52: error: expected expression"):
        read_facts(Kernel(name="k", source=source, source_name="one.cl"))


@pytest.mark.parametrize("steps", [60, 200])
@pytest.mark.parametrize(
    "step",
    [
        "x = x > {i} ? x + 1 : x * 2;",
        "x = min(x + {i}, x * 2 - n);",
        "x = max(n - x, x - {i});",
        "x = (x + {i}) / 3 + x % 7;",
        "if (x > {i}) y = x + y; else y = x - y; x = y % 3 ? y : x;",
        "x = min(x, n + {i}) + {i}; x = n > {i} ? x + {i} : 7; x = (x + {i}) / 3;",
    ],
)
def test_values_that_grow_without_end_are_given_up(step: str, steps: int) -> None:
    """Where values are nested without end an address is unknown, and says why."""
    body = " ".join(step.format(i=number) for number in range(steps))
    source = (
        "kernel void k(global int *a, int n) {"
        f" int x = get_global_id(0), y = n; a[x] = 0; {body} a[x] = 1; }}"
    )
    first, last = facts_of(source).accesses
    assert str(first.offset_bytes) == "4*global_id(0)"
    assert last.pattern is AddressPattern.UNKNOWN
    assert last.reason in (
        "an expression of more than 4,000 symbols and operators",
        "an expression that is nested more than 200 deep",
    )


def test_conditions_that_grow_without_end_are_given_up() -> None:
    """What is behind such a condition is reached or not; addresses there are known all the same."""
    body = " ".join(f"b = (b && x + n > {one}) || (!b && n < x * {one});" for one in range(200))
    facts = facts_of(
        "kernel void k(global int *a, int n) {"
        f" int x = get_global_id(0), b = x > n; {body} if (b) a[x] = 1; }}"
    )
    [store] = facts.accesses
    assert sum(len(str(one.guard)) for one in facts.reaches) < 1000 * len(facts.reaches)
    assert not store.guard.is_exact
    assert str(store.offset_bytes) == "4*global_id(0)"


def test_calls_stay_where_a_kernel_would_become_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be there most often is named, and not looked into; the rest is read as ever."""
    monkeypatch.setattr(inlining, "_MOST_INLINED", 300)
    steps = " ".join(f"x = x * {step} + a[x & 7];" for step in range(20))
    calls = " ".join(f"x += mix(a, i + {call});" for call in range(8))
    facts = facts_of(
        f"int mix(global int *a, int x) {{ {steps} return x; }} int next(int x) {{ return x + 1; }}"
        f"kernel void k(global int *a, global int *b) {{ int i = get_global_id(0), x = 0; {calls}"
        " b[next(i)] = x; if (x > 0) b[i] = 0; }"
    )
    assert {gap.reason for gap in facts.gaps} == {
        "mix is not looked into: inlined, it would make the kernel too long"
    }
    counted = count_statically(facts, NDRange(global_size=(64,), local_size=(64,)), {}, (0,))
    assert not summarise(facts, counted).is_exact
    first, last = facts.accesses
    assert (str(first.offset_bytes), str(first.guard)) == ("4*global_id(0) + 4", "true")
    assert (str(last.offset_bytes), str(last.guard)) == ("4*global_id(0)", "unknown(a)")


def test_copies_by_work_groups_are_accesses_of_their_work_items() -> None:
    """Elements are copied by turns, and those that are waited for are there."""
    source = (
        "kernel void k(global uchar2 *a, local uchar2 *b) {"
        " event_t e = async_work_group_copy(b, a, 40, 0);"
        " e = async_work_group_strided_copy(a, b, 4, 8, e); wait_group_events(1, &e); }"
    )
    facts = facts_of(source)
    ndrange = NDRange(global_size=(64,), local_size=(16,))
    counters = summarise(facts, count_statically(facts, ndrange, {}, [0]))
    assert (facts.gaps, counters.is_exact) == ((), True)
    for space, loads, stores in ((MemorySpace.GLOBAL, 40, 4), (MemorySpace.LOCAL, 4, 40)):
        assert counters.executed.count_memory(space, is_store=False) == loads / 16
        assert counters.executed.count_memory(space, is_store=True) == stores / 16


def test_a_long_unrolled_kernel_is_read_whole() -> None:
    """Thousands of lines without a loop are one block; every access has its expression."""
    rounds = "\n".join(
        f"w[{one % 16}] += rotate(w[{(one + 1) % 16}], {one % 31 + 1}u);\n"
        f"s ^= w[{one % 16}] + (s & {one + 1}u);" for one in range(1000)
    )  # fmt: skip
    facts = facts_of(
        "kernel void k(global const uint *in, global uint *out) { uint g = get_global_id(0), w[16],"
        f" s = g; for (int i = 0; i < 16; i++) w[i] = in[16 * g + i];\n{rounds}\nout[g] = s; }}"
    )
    assert facts.coverage == 1
    assert sum(one.kind is AccessKind.STORE for one in facts.accesses) == 1
    total = sum(one.operations.count(OperationKind.LOGIC) for one in facts.blocks)
    assert total == 3 * 1000  # a rotation, an "and", an exclusive "or"


ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted(ROOT.glob("examples/*/*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_lines_add_up_to_their_blocks(path: Path) -> None:
    facts = read_facts(read_problem(path).kernel)
    lines = facts.lines
    for block in facts.blocks:
        total = add_weighted(
            (counts, 1) for one in lines for place, counts in one.parts if place == block.id
        )
        assert total.operations == block.operations.operations
        assert total.memory == block.operations.memory


def test_operations_are_on_the_line_where_they_begin() -> None:
    """Counts helper functions on their own lines, and expressions over several on the first."""
    source = """float twice(float x) {
        return 2.0f * x;
    }
    kernel void k(global float *a, int n) {
        int i = get_global_id(0);
        if (i >= n)
            return;
        for (int j = 0; j < n; ++j)
            a[i] += twice(a[j])
                * a[j + 1];
    }"""
    lines = {one.line: one for one in facts_of(source).lines}
    assert lines[2].once.count(OperationKind.MULTIPLY) == 1
    assert lines[6].once.count(OperationKind.BRANCH) == 1
    assert lines[8].once.count(OperationKind.COMPARE, OperationKind.BRANCH) == 2
    assert lines[9].once.count(OperationKind.ADD, OperationKind.MULTIPLY) == 2
    loads = [
        lines[place].once.count_memory(MemorySpace.GLOBAL, is_store=False) for place in (9, 10)
    ]
    assert loads == [2, 1]


def test_facts_that_were_kept_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process takes the facts of the same code from the user's cache."""
    source = "kernel void k(global int *a, int n) { for (int i = n; i > 2; i /= 2) a[i] += n; }"
    kernel = Kernel(name="k", source=source)
    facts = read_facts(kernel)
    monkeypatch.setattr("kernelcast.features.analysis.read_code", None)
    assert read_facts.__wrapped__(kernel) == facts  # type: ignore[attr-defined] # functools.wraps


_OPERATORS = ["+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "<", "==", "&&", "||"]
_BEGIN = "kernel void k(global int *a) {"
NASTY = {
    "parentheses": f"{_BEGIN} a[0] = {'(' * 9000}1{')' * 9000}; }}",
    "blocks": f"{_BEGIN}{'{' * 9000} a[0] = 1; {'}' * 9000}}}",
    "minus": f"{_BEGIN} a[0] = {'- ' * 9000}1; }}",
    "choices": f"{_BEGIN} a[0] = {'a[1] ? 2 : ' * 1000}1; }}",
    "otherwise": f"{_BEGIN} {'if (a[1]) a[0] = 1; else ' * 1000}; }}",
    "conditions": f"{_BEGIN} {'if (a[1]) ' * 1000}; }}",
    "labels": f"{_BEGIN} {''.join(f'l{n}: ' for n in range(1000))}; }}",
    "sum": f"{_BEGIN} a[0] = {'a[1] + ' * 1000}1; }}",
    "preprocessor": f"#if {'(' * 20000}1{')' * 20000}\n#endif\n{_BEGIN} }}",
    "body": f"{_BEGIN} {'a[1] += a[2] * 3;' * 500} }}",
    "structures": "".join(f"struct S{n} {{" for n in range(100)) + "int x;"
    + "".join(f"}} m{n};" for n in range(100)) + f"{_BEGIN} }}",
    "itself": '#include "kernel.cl"\n' + f"{_BEGIN} }}",
    "missing": f'#include "absent.h"\n#include <absent.h>\n{_BEGIN} a[0] = 1; }}',
    "end in a comment": f"{_BEGIN} a[0] = 1; /*",
    "nothing": "",
    "recursion": "int f(int n) { return n ? f(n - 1) : 0; }" + f"{_BEGIN} a[f(3)] = 1; }}",
    "endless": f"{_BEGIN} for (;;) {{ a[0]++; }} }}",
    "division by zero": f"{_BEGIN} int z = 0; a[1 / z] = 1; a[1 % 0] = 2; a[1 << 99] = 3; }}",
    "large numbers": f"{_BEGIN} a[0xffffffffffffffffUL * 3] = 1; a[1ul << 63] = 2; }}",
}  # fmt: skip


def analyse_all(source: str) -> None:
    """Analyse every kernel: an error of ours or a partial result, never the end of the process."""
    try:
        for one in compile_source(source, (), "<source>").kernels:
            assert read_facts(Kernel(name=one.name, source=source)).kernel == one.name
    except KernelcastError as error:
        if not str(error):
            pytest.fail("an error without a message")


@pytest.mark.parametrize("name", NASTY)
def test_nasty_sources_come_to_an_end(name: str) -> None:
    analyse_all(NASTY[name])


@settings(max_examples=30)
@given(st.sampled_from(sorted(ROOT.glob("examples/*/*.cl"))), st.data())
def test_damaged_sources_are_taken(path: Path, data: st.DataObject) -> None:
    signs = list(path.read_text())
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(signs) - 1))
        signs[place] = data.draw(
            st.sampled_from([*"(){}[];,*&+-=<>?:#\"'\\ x0.", "\n", "\x07", "é"])
        )
    analyse_all("".join(signs))


@settings(max_examples=30)
@given(
    st.recursive(
        st.sampled_from(["x", "n", "u", "3", "-2", "0xffu", "get_local_id(0)"]),
        lambda inner: st.builds(
            "({} {} {})".format, inner, st.sampled_from(_OPERATORS),
            inner,
        ) | st.builds("({})({})".format, st.sampled_from(["uchar", "int", "uint", "long"]), inner)
        | st.builds("({} ? {} : {})".format, inner, inner, inner),
        max_leaves=12,
    )
)  # fmt: skip
def test_any_index_is_taken(index: str) -> None:
    """Gives an expression or a reason for any index, and raises nothing."""
    body = f"int x = get_global_id(0); a[{index}] = 1;"
    source = f"kernel void k(global int *a, int n, uint u) {{ {body} }}"
    [access] = [one for one in facts_of(source).accesses if one.buffer == "a"]
    assert access.offset_bytes is not None or access.reason or access.sources
