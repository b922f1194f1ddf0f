import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.sampling.prelude import (
    HIDDEN_ARGUMENTS,
    add_prelude,
    mark_line,
    needs_prelude,
    pass_sizes,
    tell_launch,
)
from support import strategies

CORRECTED = (
    "get_group_id", "get_num_groups", "get_global_size", "get_global_offset",
    "get_global_linear_id",
)  # fmt: skip
RIGHT_ANYWAY = (
    "get_global_id", "get_local_id", "get_local_size", "get_local_linear_id", "get_work_dim",
    "get_enqueued_local_size",
)  # fmt: skip
USES_ALL = " ".join(f"{name}(0);" for name in CORRECTED)


def asks(source: str, build_options: tuple[str, ...] = ()) -> bool:
    """Tell whether kernel `k` of a source needs the prelude."""
    return needs_prelude(source, build_options, "k")


SOURCES = st.text(st.sampled_from('abc_ ;{}()"#\n/*\\'), max_size=60)


@pytest.mark.parametrize("name", CORRECTED)
@pytest.mark.parametrize(
    "use", ["a = {}(0);", "a = {} (0);", "f(1,{}(0));", "#define G {}", "/**/{}//"]
)
def test_sees_every_corrected_function(name: str, use: str) -> None:
    """Asks for the prelude wherever a function that tells of the launch is named."""
    assert asks("kernel void k() { " + use.format(name) + " }")


@pytest.mark.parametrize("name", RIGHT_ANYWAY)
def test_leaves_kernels_alone_that_cannot_notice(name: str) -> None:
    """Leaves a kernel as it is that uses only functions which are right in any launch."""
    assert not asks(f"kernel void k() {{ size_t a = {name}(0); }}")


@pytest.mark.parametrize("option", ["-DNUMBER={}", "-DNUMBER={}(0)", "-DCALL(f)=f##_id"])
@pytest.mark.parametrize("name", CORRECTED)
def test_build_options_count(name: str, option: str) -> None:
    """Asks for the prelude where a build option names a function or pastes names."""
    source = "kernel void k(global int *a) { a[0] = NUMBER(0); }"
    assert asks(source, ("-w", option.replace("{}", name)))
    assert not asks(source, ("-w", "-DNUMBER=get_local_id"))


@pytest.mark.parametrize(
    "source",
    [
        '#include "ids.h"\nkernel void k() {}',
        "  #  include <ids.h>\nkernel void k() {}",
        'kernel void k() { printf("see https://x"); int a = get_group_id(0); }',
        'kernel void k() { printf("/*"); int a = get_group_id(0); printf("*/"); }',
        "#define ID(what) get_##what##_id(0)\nkernel void k() { int a = ID(group); }",
        "kernel void k() { int a = get_\\\ngroup_id(0); }",
        "kernel void k() { int a = get_\\\r\ngroup_id(0); }",
        "#define ID get_gr\\\nou\\\np_id\nkernel void k() { int a = ID(0); }",
    ],
    ids=["include", "spaced include", "comment sign in a text", "comment signs in texts",
         "pasted name", "continued line", "continued line of Windows", "twice continued name"],
)  # fmt: skip
def test_hidden_uses_count(source: str) -> None:
    """Asks for the prelude where the preprocessor may bring in such a function."""
    assert asks(source)


@given(ndrange=strategies.ndranges(), source=SOURCES)
def test_the_source_follows_unchanged(ndrange: NDRange, source: str) -> None:
    """Ends with the source as it was, on the line after the one that counts its lines from 1."""
    text = add_prelude(source, ndrange, source_name="k.cl")
    assert text.endswith('\n#line 1 "k.cl"\n' + source)


@given(ndrange=strategies.ndranges())
def test_constants_tell_of_the_whole_launch(ndrange: NDRange) -> None:
    """Defines offset, local size, group counts and size per dimension, ones and zeros beyond."""
    text = add_prelude(USES_ALL, ndrange, source_name="k.cl")
    found = dict(re.findall(r"^#define (KC_[A-Z]+_\d) (\d+)ul$", text, re.MULTILINE))
    missing = 3 - ndrange.dimensions
    expected = {
        "OFFSET": (*ndrange.global_offset, *[0] * missing),
        "LOCAL": (*ndrange.known_local_size, *[1] * missing),
        "GROUPS": (*ndrange.group_counts, *[1] * missing),
        "SIZE": (*ndrange.global_size, *[1] * missing),
    }
    assert found == {
        f"KC_{name}_{axis}": str(number)
        for name, numbers in expected.items()
        for axis, number in enumerate(numbers)
    }


def test_hands_numbers_on_to_all_who_ask() -> None:
    """Kernels and functions that ask take them, callers give them, others stay as they are."""
    source = """/* get_num_groups(0) */
#define TWICE(x) twice(x)
int twice(int x);
int twice(int x) { return 2 * x + get_num_groups(0); }
void quiet(void) {}
kernel void plain(global int *a) { quiet(); a[0] = get_global_id(0); }
kernel void none(void) { twice((1)); }
kernel __attribute__((reqd_work_group_size(4, 1, 1))) void k(global int *a) { a[0] = TWICE(3); }
"""
    text = pass_sizes(source, source_name="k.cl")
    assert text is not None
    _, _, changed = text.partition('#line 1 "k.cl"\n')
    expected = source
    for old, new in (
        ("#define TWICE(x) twice(x)", "#define TWICE(x) twice(x, KC_ARGUMENTS)"),
        ("int twice(int x)", "int twice(int x, KC_PARAMETERS)"),
        ("none(void) { twice((1));", "none(KC_PARAMETERS) { twice((1), KC_ARGUMENTS);"),
        ("void k(global int *a)", "void k(global int *a, KC_PARAMETERS)"),
    ):
        expected = expected.replace(old, new)
    assert changed == expected
    assert [needs_prelude(source, (), one) for one in ("plain", "none", "k")] == [False, True, True]


def test_nothing_is_handed_on_where_nobody_asks() -> None:
    """Gives nothing of a source whose functions ask for nothing, whatever macros do."""
    assert pass_sizes("#define G get_group_id(0)\nkernel void k() {}", source_name="k") is None


@given(ndrange=strategies.ndranges(), data=st.data())
def test_tells_what_functions_answer(ndrange: NDRange, data: st.DataObject) -> None:
    """Tells the first work-group, what counts and sizes lack, and the offset; zeros beyond."""
    first = tuple(data.draw(st.integers(0, one - 1)) for one in ndrange.group_counts)
    pairs = zip(first, ndrange.group_counts, strict=True)
    shape = tuple(data.draw(st.integers(1, count - begin)) for begin, count in pairs)
    box = GroupBox(start=first, shape=shape)
    told = tell_launch(ndrange, box)
    assert len(told) == HIDDEN_ARGUMENTS
    own = [*first], [*shape], [*ndrange.work_items_of(box)[1]]
    whole = [*first], [*ndrange.group_counts], [*ndrange.global_size]
    missing = [0] * (3 - ndrange.dimensions)
    assert told[:3] == [*own[0], *missing]
    for place in (1, 2):
        lacks = told[3 * place : 3 * place + 3]
        sums = [(a + b) % 2**64 for a, b in zip(own[place] + missing, lacks, strict=True)]
        assert sums == whole[place] + missing
    assert told[9:] == [*ndrange.global_offset, *missing]


@pytest.mark.parametrize(
    ("name", "printed"),
    [("a.cl", "a.cl"), ('say "hi".cl', "say 'hi'.cl"), ("dir\\a.cl", "dir/a.cl")],
)
def test_names_are_safe_in_a_directive(name: str, printed: str) -> None:
    """Writes a file name so that it cannot end the directive's text."""
    assert mark_line(name) == f'#line 1 "{printed}"\n'
