import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.prelude import add_prelude, mark_line, needs_prelude
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
SOURCES = st.text(st.sampled_from('abc_ ;{}()"#\n/*\\'), max_size=60)


@pytest.mark.parametrize("name", CORRECTED)
@pytest.mark.parametrize(
    "use", ["a = {}(0);", "a = {} (0);", "f(1,{}(0));", "#define G {}", "/**/{}//"]
)
def test_sees_every_corrected_function(name: str, use: str) -> None:
    """Asks for the prelude wherever a function that tells of the launch is named."""
    assert needs_prelude("kernel void k() { " + use.format(name) + " }")


@pytest.mark.parametrize("name", RIGHT_ANYWAY)
def test_leaves_kernels_alone_that_cannot_notice(name: str) -> None:
    """Leaves a kernel as it is that uses only functions which are right in any launch."""
    assert not needs_prelude(f"kernel void k() {{ size_t a = {name}(0); }}")


@pytest.mark.parametrize(
    "source",
    [
        "// get_group_id(0)\nkernel void k() {}",
        "/* uses get_num_groups(0)\n * and get_global_size(0) */ kernel void k() {}",
    ],
)
def test_comments_count(source: str) -> None:
    """Asks for the prelude too often rather than too seldom: a needless one changes nothing."""
    assert needs_prelude(source)


@pytest.mark.parametrize("option", ["-DNUMBER={}", "-DNUMBER={}(0)", "-DCALL(f)=f##_id"])
@pytest.mark.parametrize("name", CORRECTED)
def test_build_options_count(name: str, option: str) -> None:
    """Asks for the prelude where a build option names a function or pastes names."""
    source = "kernel void k(global int *a) { a[0] = NUMBER(0); }"
    assert needs_prelude(source, ("-w", option.replace("{}", name)))
    assert not needs_prelude(source, ("-w", "-DNUMBER=get_local_id"))


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
    assert needs_prelude(source)


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


@given(ndrange=strategies.ndranges())
def test_every_corrected_function_is_redefined(ndrange: NDRange) -> None:
    """Redefines each function that tells of the launch, once, and no other."""
    text = add_prelude(USES_ALL, ndrange, source_name="k.cl")
    defined = re.findall(r"^#define (get_\w+) kc_\w+$", text, re.MULTILINE)
    assert sorted(defined) == sorted(CORRECTED)


@given(ndrange=strategies.ndranges(), source=SOURCES)
def test_mapped_rows_rename_global_ids_too(ndrange: NDRange, source: str) -> None:
    """Redefines global ids where a row is mapped, and still ends with the source."""
    text = add_prelude(USES_ALL + source, ndrange, source_name="k.cl", row_width=3)
    defined = re.findall(r"^#define (get_\w+) kc_\w+$", text, re.MULTILINE)
    assert sorted(defined) == sorted((*CORRECTED, "get_global_id"))
    assert text.endswith('\n#line 1 "k.cl"\n' + USES_ALL + source)


@pytest.mark.parametrize("row_width", [0, 3])
@pytest.mark.parametrize("name", CORRECTED)
def test_only_kernels_that_may_ask_for_sizes_differ_by_them(name: str, row_width: int) -> None:
    """Gives the same text for index spaces of other sizes unless the kernel may ask for these."""
    ndranges = [NDRange(global_size=(size, 64), local_size=(8, 8)) for size in (512, 1024)]
    for source, options in ((f"{name}(0);", ()), ("", (f"-DNUMBER={name}",))):
        one, other = (
            add_prelude(source, ndrange, source_name="k.cl",
                        build_options=options, row_width=row_width)
            for ndrange in ndranges
        )  # fmt: skip
        assert (one == other) is (name == "get_group_id")


@pytest.mark.parametrize(
    ("ndrange", "integer"),
    [
        (NDRange(global_size=(2**15, 2**15), local_size=(8, 8)), "int"),
        (NDRange(global_size=(2**16, 2**15), local_size=(8, 8)), "long"),
        (NDRange(global_size=(64, 64), local_size=(8, 8), global_offset=(0, 2**31)), "long"),
    ],
    ids=["fits", "many work-items", "far offset"],
)  # fmt: skip
def test_mapped_ids_never_overflow(ndrange: NDRange, integer: str) -> None:
    """Sums ids in 32 bits only where the row's last one fits."""
    text = add_prelude("", ndrange, source_name="k.cl", row_width=8)
    assert f"({integer})get_global_id(0)" in text
    wide = add_prelude("", ndrange, source_name="k.cl", row_width=8, is_wide=True)
    assert "(long)get_global_id(0)" in wide


@pytest.mark.parametrize(
    ("name", "printed"),
    [("a.cl", "a.cl"), ('say "hi".cl', "say 'hi'.cl"), ("dir\\a.cl", "dir/a.cl")],
)
def test_names_are_safe_in_a_directive(name: str, printed: str) -> None:
    """Writes a file name so that it cannot end the directive's text."""
    assert mark_line(name) == f'#line 1 "{printed}"\n'


def test_names_never_break_the_line() -> None:
    """Keeps a name with a line break on one line."""
    assert mark_line("a\nb\r.cl\ud800") == '#line 1 "a b .cl "\n'
