import pytest

from kernelcast.sampling.prelude import (
    mark_line,
    needs_prelude,
)

CORRECTED = (
    "get_group_id", "get_num_groups", "get_global_size", "get_global_offset",
    "get_global_linear_id",
)  # fmt: skip
RIGHT_ANYWAY = (
    "get_global_id", "get_local_id", "get_local_size", "get_local_linear_id", "get_work_dim",
    "get_enqueued_local_size",
)  # fmt: skip


def asks(source: str, build_options: tuple[str, ...] = ()) -> bool:
    """Tell whether kernel `k` of a source needs the prelude."""
    return needs_prelude(source, build_options, "k")


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


@pytest.mark.parametrize(
    ("name", "printed"),
    [("a.cl", "a.cl"), ('say "hi".cl', "say 'hi'.cl"), ("dir\\a.cl", "dir/a.cl")],
)
def test_names_are_safe_in_a_directive(name: str, printed: str) -> None:
    """Writes a file name so that it cannot end the directive's text."""
    assert mark_line(name) == f'#line 1 "{printed}"\n'
