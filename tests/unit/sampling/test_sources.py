"""Sources before they are built: what they may notice, their signatures, loops in C."""

from dataclasses import replace

import pytest

from kernelcast.features.loop_nest import Listing
from kernelcast.launches.modelling.cpu_loops import write_program
from kernelcast.records.arguments import Access, Parameter
from kernelcast.records.errors import InputError, SignatureError
from kernelcast.sampling.arguments import check_arguments, infer_access
from kernelcast.sampling.loop_benchmark import measure_loop
from kernelcast.sampling.prelude import mark_line, needs_prelude
from support.problems import buffer_of, number_of

CORRECTED = (
    "get_group_id", "get_num_groups", "get_global_size", "get_global_offset",
    "get_global_linear_id",
)  # fmt: skip
RIGHT_ANYWAY = (
    "get_global_id", "get_local_id", "get_local_size", "get_local_linear_id", "get_work_dim",
    "get_enqueued_local_size",
)  # fmt: skip


def asks(source: str, build_options: tuple[str, ...] = ()) -> bool:
    return needs_prelude(source, build_options, "k")


@pytest.mark.parametrize("name", CORRECTED + RIGHT_ANYWAY)
@pytest.mark.parametrize(
    "use", ["a = {}(0);", "a = {} (0);", "f(1,{}(0));", "#define G {}", "/**/{}//"]
)
def test_sees_every_corrected_function(name: str, use: str) -> None:
    """Asks for the prelude wherever a function that tells of the launch is named, and leaves
    kernels alone that cannot notice."""
    assert asks("kernel void k() { " + use.format(name) + " }") == (name in CORRECTED)


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
)
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


FLOATS = Parameter(index=0, name="a", type_name="float*", address_space="global", is_const=False)


def test_const_means_read() -> None:
    """Takes the declared access, else that of the type: const is only read."""
    assert infer_access(FLOATS, None) is Access.READ_WRITE
    assert infer_access(replace(FLOATS, is_const=True), None) is Access.READ
    assert infer_access(FLOATS, Access.READ) is Access.READ


@pytest.mark.parametrize("name", ["pipe int", "read_only pipe int"])
def test_a_pipe_is_refused_as_a_pipe(name: str) -> None:
    """Whatever is given for it, where the driver tells of arguments."""
    pipe = Parameter(index=0, name="p", type_name=name, address_space="private", is_const=False)
    check_arguments("k", [replace(FLOATS, is_known=False)], [number_of(0, "int8")])
    for given in (buffer_of("int32"), number_of(0)):
        with pytest.raises(SignatureError, match="pipes cannot be given"):
            check_arguments("k", [pipe], [given])


LISTING = """
#include <math.h>
/* double hidden[N]; */
const double c0, c1 = fmax(2.0, 1.0);
double a[M][N], b[M][N]; // rows
float s;
for (int j = 0; j < M; ++j)
    for (int i = 0; i < N; ++i)
        a[j][i] = c0 * b[j][i] + c1 * s;
"""


def test_programs_fill_arrays_and_keep_results() -> None:
    """Writes to all pages first, hides scalars from the compiler and uses what is computed."""
    program = write_program(Listing(LISTING, "<listing>"))
    assert "hidden" not in program
    for text in (
        "#include <math.h>", "static double a[M][N]", "static double b[M][N]", "((double *)b)[n]",
        "double c0 = (double)kc_value;", "double c1 = fmax(2.0, 1.0);", "kc_sink = (double)s;",
    ):  # fmt: skip
        assert text in program


def test_says_which_compiler_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names the compiler asked for, or what to install."""
    with pytest.raises(InputError, match="no-such-compiler"):
        measure_loop("", compiler="no-such-compiler")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(InputError, match="install gcc or clang"):
        measure_loop("")
