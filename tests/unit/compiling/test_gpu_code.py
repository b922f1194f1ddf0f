import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernelcast.analytic.gpu.code import read_work
from kernelcast.compiling import (
    Compiled,
    Target,
    assemble_ptx,
    compile_kernel,
    compiler,
    facts,
    find_ptxas,
    read_facts,
)
from kernelcast.compiling.execution import count_executed
from kernelcast.compiling.facts import Access, CodeFacts
from kernelcast.compiling.targets import CodeFormat
from kernelcast.records.device import TraitSource
from kernelcast.records.errors import InputError, KernelNotFoundError
from kernelcast.records.ndrange import NDRange
from support.corpus_kernels import list_kernels

KERNELS = list_kernels()
needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="no ptxas: the extra cuda has it")
needs_math = pytest.mark.skipif(
    compiler.find_libclc(CodeFormat.AMD) is None, reason="no libclc: apt-get install libclc-15"
)
TILE = "__attribute__((reqd_work_group_size(64, 2, 1)))"
WINDOWED = """
kernel void k(global float *a, local float *b, constant float *c, float d)
{
    size_t i = get_global_id(0);
    b[get_local_id(0)] = a[i] * c[get_group_id(1)];
    barrier(CLK_LOCAL_MEM_FENCE);
    a[i] = fma(b[get_local_id(0) ^ 1], d, sqrt(a[get_num_groups(0)]));
}
"""


def compile_example(name: str, target: str) -> Compiled:
    kernel = KERNELS[name]
    compiled = compile_kernel(
        kernel.source, kernel.build_options, Target.parse(target), source_name=kernel.source_name
    )
    compiled.require_builtins()
    return compiled


def example_facts(name: str, target: str) -> CodeFacts:
    return read_facts(compile_example(name, target), KERNELS[name].name)


@needs_ptxas
def test_ptx_of_all_kernels() -> None:
    """Each kernel of the corpus and of the examples becomes PTX that NVIDIA's assembler takes."""

    def assemble(name: str) -> int:
        compiled = compile_example(name, "sm_90")
        assert ".func" not in compiled.text, f"{name}: a call was not inlined"
        return assemble_ptx(compiled.text, "sm_90")[KERNELS[name].name].registers

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        registers = list(pool.map(assemble, KERNELS))
    assert len(registers) >= 186
    assert all(8 <= count <= 255 for count in registers)


@needs_math
def test_amd_code_of_all_kernels() -> None:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda name: example_facts(name, "gfx90a"), KERNELS))
    assert all(0 < one.registers.value <= 512 for one in found)
    assert all("call" not in one.instructions for one in found)


@needs_ptxas
@pytest.mark.parametrize("processor", ["sm_70", "sm_80", "sm_100"])
def test_other_processors(processor: str) -> None:
    """PTX for GPUs from Volta on is assembled; for one that ptxas forgot, by its oldest."""
    compiled = compile_example("examples/matmul_tiled", processor)
    assert f".target {processor}" in compiled.text
    assert assemble_ptx(compiled.text, processor)["matmul"].shared_bytes == 5120


def test_windows_see_the_whole_launch() -> None:
    """Ids and counts of PTX come from the variable that the host writes, offsets included; constant
    memory, which no CUDA launch can pass, is read as global; required sizes are kept."""
    source = WINDOWED.replace("kernel void", f"kernel {TILE} void")
    compiled = compile_kernel(source, (), Target.parse("sm_75"))
    assert ".weak .const .align 4 .b8 kernelcast_launch[52];" in compiled.text
    loads = re.findall(r"ld\.const\.\w+\s+%\w+, \[kernelcast_launch(\+\d+)?\]", compiled.text)
    assert set(loads) == {"", "+4", "+12", "+24"}
    for part, is_there in (("%ctaid.x", True), ("%nctaid", False), (".ptr .const", False),
                           ("ld.global.nc", True), (".reqntid 64, 2, 1\n{", True)):  # fmt: skip
        assert (part in compiled.text) == is_there, part
    assert compiled.kernels[0].required_local_size == (64, 2, 1)


@pytest.mark.parametrize(
    ("options", "instruction"),
    [
        ((), "div.full.f32"),
        (("-cl-fp32-correctly-rounded-divide-sqrt",), "div.rn.f32"),
        (("-cl-fast-relaxed-math",), "div.approx"),
        (("-cl-denorms-are-zero",), "div.full.ftz.f32"),
    ],
)
def test_precision(options: tuple[str, ...], instruction: str) -> None:
    """Divisions are as precise as NVIDIA's own compiler of OpenCL C makes them."""
    source = "kernel void k(global float *a) { a[0] = a[1] / a[2]; }"
    assert instruction in compile_kernel(source, options, Target.parse("sm_75")).text


@pytest.mark.parametrize(
    ("target", "fused", "access", "source"),
    [
        pytest.param("sm_90", 64, ("store", "global", 1), TraitSource.REPORTED, marks=needs_ptxas),
        ("gfx90a", 32, ("load", "local", 16), TraitSource.REPORTED),
        ("sm_90", 64, ("store", "global", 1), TraitSource.ASSUMED),
    ],
)
def test_facts_of_code(
    target: str, fused: int, access: tuple[str, str, int], source: TraitSource,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A tile of 16 x 16 x 4 products holds 64 fused operations, two in one on AMD, its loads and
    two barriers; without ptxas registers are an estimate that says so."""
    if source is TraitSource.ASSUMED:
        monkeypatch.setattr(facts, "find_ptxas", lambda: None)
    found = example_facts("examples/matmul_tiled", target)
    assert found.instructions["fp32"] >= fused
    assert found.instructions["barrier"] == 2
    assert found.accesses[Access(operation="load", address_space="global", size_bytes=16)] == 1
    assert found.local_bytes == 5120
    operation, space, count = access
    wide = Access(operation=operation, address_space=space, size_bytes=16)
    assert found.accesses[wide] == count
    assert found.registers.source is source
    assert 16 <= found.registers.value <= 128
    if target == "gfx90a":
        assert (found.waves_per_simd, bool(found.scalar_registers)) == (8, True)


def test_facts_refused() -> None:
    with pytest.raises(InputError, match="name a GPU"):
        read_facts(compile_example("examples/triad", "x86"), "triad")
    with pytest.raises(KernelNotFoundError, match="no kernel 'quad'; it has triad"):
        read_facts(compile_example("examples/triad", "sm_75"), "quad")


@pytest.mark.parametrize("target", ["sm_75", "gfx90a"])
def test_own_library_alone(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without libdevice and libclc all compiles but what needs math functions, which are named."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("kernelcast.compiling.compilation.find_libclc", lambda _: None)
    monkeypatch.setattr(compiler, "find_libdevice", lambda: None)
    assert compile_kernel(WINDOWED, (), Target.parse(target)).missing == ()
    source = "kernel void k(global float4 *a) { a[0] = sin(a[1]); }"
    assert compile_kernel(source, (), Target.parse(target)).missing == ("sin(float4)",)


SOURCE = """
kernel void product(global const float *a, global const float *b, global float *c, int n)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= n || y >= n) return;
    float s = 0;
    for (int k = 0; k < n; k++) s += a[y * n + k] * b[k * n + x];
    c[y * n + x] = s;
}
kernel void sum(global float *a, local float *t)
{
    int l = get_local_id(0);
    t[l] = a[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = get_local_size(0) / 2; s > 0; s /= 2) {
        if (l < s) t[l] += t[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0) a[get_group_id(0)] = t[0];
}
kernel void triangle(global float *a, int n)
{
    int i = get_global_id(0);
    float s = 0;
    for (int j = 0; j <= i; j++) s += a[j * n + i];
    a[i] = s;
}
kernel void walk(global const int *next, global int *steps)
{
    int i = get_global_id(0), n = 0;
    while (i != 0) { i = next[i]; n++; }
    steps[get_global_id(0)] = n;
}
kernel void choose(global float *a)
{
    float e[16];
    for (int i = 0; i < 16; i++) e[i] = a[i];
    for (int k = 0; k < 64; k++) {
        #pragma unroll 1
        for (int i = 0; i < 16; i++) e[i] = e[i] * e[i] + a[k];
    }
    for (int i = 0; i < 16; i++) a[i + get_global_id(0)] = e[i];
}
kernel void high(global float *a, int n, ulong seed)
{
    int steps = n * 5 / 7 + (mul_hi(seed * 0x9e3779b97f4a7c15, get_global_id(0) + (ulong)n) < seed);
    float s = 0;
    #pragma unroll 1
    for (int j = 0; j < steps / 10 * 10; j++) s = s * s + a[j];
    a[get_global_id(0)] = s;
}
"""
WARPS = NDRange(global_size=(320,), local_size=(32,))


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compile_kernel(SOURCE, (), Target.parse("sm_80"))


def count(
    compiled: Compiled, kernel: str, shape: NDRange, *arguments: int | None
) -> Callable[..., float]:
    executed = count_executed(compiled, kernel, shape, arguments)
    assert executed is not None
    return lambda name, part="": sum(
        visits * sum(one.name == name and (not part or part in one.parts) for one in block)
        for visits, block in executed
    )


@pytest.mark.parametrize("n", [48, 4096])
def test_a_loop_runs_as_often_as_its_argument_says(compiled: Compiled, n: int) -> None:
    """Loops that the compiler unrolls execute every turn, those left over included."""
    shape = NDRange(global_size=(n, n), local_size=(16, 16))
    found = count(compiled, "product", shape, None, None, None, n)
    assert found("fma") == pytest.approx(n)
    assert found("ld", "global") == pytest.approx(2 * n)


def test_upper_halves_of_products_are_known(compiled: Compiled) -> None:
    """Divisions of an argument by a constant, and products of 64 bits, end in a number of turns."""
    shape = NDRange(global_size=(1024,), local_size=(64,))
    found = count(compiled, "high", shape, None, 70, (1 << 64) - 1)
    assert found("fma") == pytest.approx(50)


def test_warps_that_take_no_part_do_not_count(compiled: Compiled) -> None:
    """In a reduction of 256 work-items the half that adds needs fewer warps each time; waits for
    memory and local memory's wavefronts are those of a warp."""
    shape = NDRange(global_size=(256 * 99,), local_size=(256,))
    found = count(compiled, "sum", shape, None, None)
    # 128 work-items need 4 of 8 warps, then 2, then 1 for all smaller halves.
    assert found("add", "f32") == pytest.approx((4 + 2 + 6) / 8)
    assert found("bar") == pytest.approx(1 + 8)
    work = read_work(compiled, "sum", shape, [None, None])
    assert work is not None
    # A store each, two loads and a store for each addition, a load at the end.
    assert work["wavefronts"] == pytest.approx(1 + 3 * 12 / 8 + 1 / 8)
    assert work["rounds"] == pytest.approx(1.0)


def test_a_warp_runs_as_long_as_its_last_work_item(compiled: Compiled) -> None:
    """Places of the launch are averaged; the longest lane of a warp decides."""
    shape = NDRange(global_size=(19200,), local_size=(32,))
    found = count(compiled, "triangle", shape, None, 19200)
    lasts = [32 * (group + 1) for group in (100, 300, 500)]
    assert found("add", "f32") == pytest.approx(sum(lasts) / 3, rel=0.01)


def test_loops_that_data_end_have_no_answer(compiled: Compiled) -> None:
    assert read_work(compiled, "walk", WARPS, [None, None]) is None


def test_arrays_by_an_index_that_varies_cost_selections(compiled: Compiled) -> None:
    """An element of a private array is no register where its index is a loop's counter."""
    found = read_work(compiled, "choose", WARPS, [None])
    assert found is not None
    assert found["fp32"] == pytest.approx(64 * 16, rel=0.1)
    assert found["issued"] > 3 * found["fp32"]
