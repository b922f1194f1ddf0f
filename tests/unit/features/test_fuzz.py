"""Nasty sources: an error of ours or a partial result, and never the end of the process."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.features.analysis import compile_source, read_facts
from kernelcast.records.errors import KernelcastError
from kernelcast.records.kernel import Kernel
from support.kernel_facts import facts_of

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*/*.cl"))
_OPERATORS = ["+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "<", "==", "&&", "||"]
_BEGIN = "kernel void k(global int *a) {"
# Each must come to an end in this process; names tell what nests.
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
    "end in a string": f'{_BEGIN} a[0] = "',
    "nothing": "",
    "recursion": "int f(int n) { return n ? f(n - 1) : 0; }" + f"{_BEGIN} a[f(3)] = 1; }}",
    "endless": f"{_BEGIN} for (;;) {{ a[0]++; }} }}",
    "division by zero": f"{_BEGIN} int z = 0; a[1 / z] = 1; a[1 % 0] = 2; a[1 << 99] = 3; }}",
    "large numbers": f"{_BEGIN} a[0xffffffffffffffffUL * 3] = 1; a[1ul << 63] = 2; }}",
}  # fmt: skip


def analyse_all(source: str) -> None:
    """Analyse every kernel; what is refused must be refused by an error of ours."""
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
@given(st.sampled_from(EXAMPLES), st.data())
def test_damaged_sources_are_taken(path: Path, data: st.DataObject) -> None:
    """Analyses an example with some characters replaced."""
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
