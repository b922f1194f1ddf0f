import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

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
from kernelcast.compiling.facts import Access, CodeFacts
from kernelcast.compiling.targets import CodeFormat
from kernelcast.records.device import TraitSource
from kernelcast.records.errors import InputError, KernelNotFoundError
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
    """Each kernel of the corpus and of the examples becomes assembly for AMD's GPUs."""
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
    ("target", "fused", "local_loads"), [pytest.param("sm_90", 64, 0, marks=needs_ptxas),
                                         ("gfx90a", 32, 16)],
)  # fmt: skip
def test_facts_of_code(target: str, fused: int, local_loads: int) -> None:
    """A tile of 16 x 16 x 4 products holds 64 fused operations, two in one on AMD, its loads and
    two barriers."""
    found = example_facts("examples/matmul_tiled", target)
    assert found.instructions["fp32"] >= fused
    assert found.instructions["barrier"] == 2
    assert found.accesses[Access(operation="load", address_space="global", size_bytes=16)] == 1
    assert found.local_bytes == 5120
    if local_loads:
        load = Access(operation="load", address_space="local", size_bytes=16)
        assert found.accesses[load] == local_loads
        assert (found.waves_per_simd, bool(found.scalar_registers)) == (8, True)
    else:
        store = Access(operation="store", address_space="global", size_bytes=16)
        assert found.accesses[store] == 1
        assert found.registers.source is TraitSource.REPORTED


def test_facts_without_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ptxas registers are an estimate that says so."""
    monkeypatch.setattr(facts, "find_ptxas", lambda: None)
    found = example_facts("examples/matmul_tiled", "sm_90")
    assert found.registers.source is TraitSource.ASSUMED
    assert 16 <= found.registers.value <= 64
    assert found.local_bytes == 5120


def test_facts_refused() -> None:
    """Facts are of GPUs' code, and of kernels that it defines."""
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
