import pytest

from kernelcast.features.tracing import make_tracing_kernel
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel


def mark(source: str, *options: str) -> str:
    kernel = Kernel(name="k", source=source, build_options=options)
    traced = make_tracing_kernel(kernel)
    assert traced.name == kernel.name
    assert traced.build_options == kernel.build_options
    return traced.source


def test_the_body_lies_between_the_marks() -> None:
    """Puts the begin behind the first brace and the end before the last, lines kept."""
    marked = mark("kernel void k(global int *a)\n{\n    a[0] = 1;\n}\n")
    assert marked == (
        "kernel void k(global int *a, KC_TRACE_PARAMETER)\n"
        "{KC_TRACE_BEGIN\n#define return goto kc_trace_end\n#line 2\n"
        "\n    a[0] = 1;\n"
        "\n#undef return\n#line 4\nkc_trace_end: __attribute__((unused)); KC_TRACE_END}\n"
    )


@pytest.mark.parametrize("parameters", ["", "void", " void "])
def test_a_kernel_without_parameters_gets_one(parameters: str) -> None:
    marked = mark(f"kernel void k({parameters}) {{ }}")
    assert marked.replace(" ", "").startswith("kernelvoidk(KC_TRACE_PARAMETER){")


def test_attributes_and_other_functions_stay() -> None:
    """Finds the parameter list among attributes with parentheses, and only this kernel."""
    before = "float half_of(float x) { return x / 2; }\n"
    attributes = "__attribute__((reqd_work_group_size(8, 1, 1)))"
    after = "\nkernel void other(global float *a) { return; }"
    source = f"{before}kernel {attributes} void k(global float *a /* ) */) {{ a[0] = 1; }}{after}"
    marked = mark(source)
    assert marked.startswith(f"{before}kernel {attributes} void k(global float *a, KC_")
    assert marked.endswith(f"KC_TRACE_END}}{after}")


@pytest.mark.parametrize(
    ("body", "mark_of_end"),
    [
        ("if (*a) return; barrier(1);", "KC_TRACE_END_APART"),
        ("if (*a) return;", "KC_TRACE_END"),
        ("barrier(1);", "KC_TRACE_END"),
    ],
)
def test_who_returned_waits_for_nobody_at_a_barrier(body: str, mark_of_end: str) -> None:
    """Ends apart only where some work-items may wait at a barrier after others returned."""
    assert mark(f"kernel void k(global int *a) {{ {body} }}").endswith(f"{mark_of_end}}}")


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("kernel void other(global int *a) { a[0] = 1; }", "does not hold its definition"),
        ("void f() {}\nkernel void k(int n) {\nreturn f(); }", "line 3 returns an expression"),
        ("kernel void k(int n);\nkernel void k(int n) { }", "line 1 declares it ahead"),
        ("kernel void k(int n) { }\nkernel void l(int n) { k(n); }", "line 2 calls it"),
        ("#define BODY { }\nkernel void k(int n) BODY", "line 2 has a body that is made by"),
    ],
)
def test_what_cannot_be_marked_says_why(source: str, complaint: str) -> None:
    with pytest.raises(InputError, match=rf"kernel k: .*{complaint}"):
        mark(source)
