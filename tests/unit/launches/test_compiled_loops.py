"""Loops that are compiled here, found in the assembly and given to OSACA."""

import shutil
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest

from kernelcast.analytic.cpu.assembly_loops import list_inner_loops
from kernelcast.analytic.cpu.streams import bind
from kernelcast.features.loop_nest import read_loop_nest
from kernelcast.launches.modelling.cpu_loops import (
    LoopModel,
    choose_architecture,
    compile_loop,
    count_flops,
    find_loop,
    write_loop,
)
from kernelcast.records.errors import InputError
from kernelcast.sampling.host import Processor
from kernelcast.sampling.loop_benchmark import FLAGS, compile_to_assembly, find_compiler
from support.loop_counting import count_passes
from support.machines import IVY_BRIDGE

ROW = "double a[N], b[N], c[N], d[N], s, t; for (int i = 0; i < N; i++) "
SPACE = (
    "double a[L][M][N], b[L][M][N]; for (int k = 1; k < L - 1; k++) "
    "for (int j = 1; j < M - 1; j++) for (int i = 1; i < N - 1; i++) "
)
CROSS = "a[k-1][j][i] + a[k+1][j][i] + a[k][j-1][i] + a[k][j+1][i] + a[k][j][i-1] + a[k][j][i+1]"
KERNELS = {
    "triad": ROW + "a[i] = b[i] + s * c[i];",
    "sum": ROW + "s += a[i];",
    "Jacobi 3-D": SPACE + f"b[k][j][i] = {CROSS};",
    "if else": ROW + "if (a[i] > t) c[i] = a[i] * b[i]; else c[i] = b[i];",
    "matrix product": "double a[N][N], b[N][N], c[N][N]; for (int i = 0; i < N; i++) "
    "for (int k = 0; k < N; k++) for (int j = 0; j < N; j++) c[i][j] += a[i][k] * b[k][j];",
    "product in place": ROW + "{ a[i] *= b[i]; c[i] = exp(a[i]); }",
    "floats": "float a[N], b[N]; for (int i = 0; i < N; i++) b[i] = 2 * a[i];",
    "backwards": "double a[N], b[N]; for (int i = N - 1; i >= 0; i--) b[i] = 2 * a[i];",
}  # fmt: skip
SIZES = {"L": 12, "M": 20, "N": 400}
HAS_COMPILER = pytest.mark.skipif(
    find_compiler() is None or shutil.which("cc") is None, reason="no C compiler is installed"
)


@HAS_COMPILER
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        *((name, FLAGS) for name in KERNELS),
        *((name, flags) for name in ("sum", "Jacobi 3-D", "if else", "matrix product")
          for flags in (("-O2", "-march=x86-64"), ("-O3", "-funroll-loops"))),
    ],
)  # fmt: skip
def test_the_loop_that_is_found_executes_the_iterations(
    name: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    """Passes of the found loop, counted as it runs, times its iterations are those of the nest."""
    source = KERNELS[name]
    nest = read_loop_nest(source, {})
    bound = bind(nest, SIZES)
    compiler, assembly = compile_to_assembly(
        *write_loop(source, nest, SIZES, [*flags, "-mno-red-zone"])
    )
    strides = [one.strides[-1] for one in bound.accesses]
    found, iterations = find_loop(assembly, strides, count_flops(nest.executed), name)
    passes = count_passes(assembly, found.label, compiler, tmp_path)
    total = prod(bound.trips)
    assert 0.9 * total <= passes * iterations <= total


@HAS_COMPILER
def test_osaca_is_asked_about_what_was_compiled() -> None:
    """A triad on Ivy Bridge loads two vectors of four: one cycle each, two lines a cache line."""
    pytest.importorskip("osaca")
    nest = read_loop_nest(KERNELS["triad"], {})
    found = compile_loop(KERNELS["triad"], nest, IVY_BRIDGE, {"N": 1000}, architecture="IVB")
    terms = found(nest, 8)
    assert found.iterations == 4
    assert terms.non_overlapping == pytest.approx(4)
    assert any("-march=ivybridge" in note for note in terms.notes)
    half = replace(nest, executed=type(nest.executed)(operations={}, memory=nest.executed.memory))
    assert found(half, 8).non_overlapping < terms.non_overlapping


@HAS_COMPILER
def test_a_masked_loop_has_no_range_in_the_core() -> None:
    """Where nothing is jumped over, data change the traffic and not the time in the core."""
    pytest.importorskip("osaca")
    source = KERNELS["if else"]
    nest = read_loop_nest(source, {})
    compiled = compile_loop(source, nest, IVY_BRIDGE, {"N": 500}, architecture="SKX")
    assert compiled.executes_all_sides == (not compiled.loop.jumps)
    found = LoopModel(nest=nest, machine=IVY_BRIDGE, in_core=compiled).predict({"N": 500})  # in L1
    assert found.least_cycles <= found.cycles <= found.most_cycles
    assert not compiled.executes_all_sides or found.least_cycles == found.most_cycles


def test_jumps_and_calls_are_told() -> None:
    """Both sides of a branch belong to the loop, wherever they stand, and calls are named."""
    found = list_inner_loops(BRANCHING, "kc_run")
    assert [(one.jumps, one.calls, sorted(one.advances)) for one in found] == [(1, ("exp",), [8])]
    assert found[0].body.count(":") == 3
    assert "ret" not in found[0].body


BRANCHING = """
kc_run:
    leaq a(%rip), %rdx
    xorl %eax, %eax
.L3:
    vmovsd (%rdx,%rax,8), %xmm0
    vcomisd %xmm1, %xmm0
    ja .L7
.L2:
    incq %rax
    cmpq $1000, %rax
    jne .L3
    ret
.L7:
    call exp@PLT
    leaq b(%rip), %rcx
    vmovsd %xmm0, (%rcx,%rax,8)
    jmp .L2
    .size kc_run, .-kc_run
"""


def test_clang_writes_it_its_way() -> None:
    """Labels with comments, symbols as displacements and registers that others are copied to."""
    text = """
kc_run:                                 # @kc_run
# %bb.0:
	movq	$-8000, %rax                    # imm = 0xE0C0
	.p2align	4, 0x90
.LBB0_1:                                # =>This Inner Loop Header: Depth=1
	vmovups	a+8000(%rax), %ymm0
	vaddpd	b+8000(%rax), %ymm0, %ymm0
	movq	%rax, %rcx
	vmovups	%ymm0, c+8000(%rcx)
	addq	$32, %rax
	jne	.LBB0_1
# %bb.2:
	retq
.Lfunc_end0:
	.size	kc_run, .Lfunc_end0-kc_run
"""
    [found] = list_inner_loops(text, "kc_run")
    assert found.count_iterations([8]) == 4
    assert found.count_iterations([8, 16]) is None


def test_a_loop_that_is_gone_is_told() -> None:
    """Says how addresses move in what was found, and what to do."""
    with pytest.raises(InputError, match=r"24 bytes, is not found.*by 8 bytes.*--assembly.*--core"):
        find_loop(BRANCHING, [24], 1, "x.c")
    with pytest.raises(InputError, match="it has no loop"):
        find_loop("kc_run:\n    call memcpy\n    ret\n", [8], 1, "x.c")


@pytest.mark.parametrize(
    ("processor", "name"),
    [("ivybridge", "IVB"), ("skylake-avx512", "SKX"), ("znver2", "ZEN2"), ("znver5", "ZEN4"),
     ("emeraldrapids", "SPR"), ("pentium4", None), ("neoverse-n1", None)],
)  # fmt: skip
def test_processors_are_told_by_their_kind(
    monkeypatch: pytest.MonkeyPatch, processor: str, name: str | None
) -> None:
    """Newer ones that OSACA lacks are taken for their elders."""
    loops = "kernelcast.launches.modelling.cpu_loops"
    monkeypatch.setattr(f"{loops}.get_host_cpu_name", lambda: processor)
    monkeypatch.setattr(f"{loops}.read_processor", lambda: Processor(name="Here", generation=""))
    own = replace(IVY_BRIDGE, id="here", name="Here 3 GHz")
    if name is None:
        with pytest.raises(InputError, match="--architecture ICX"):
            choose_architecture(own)
        return
    found, flag = choose_architecture(own)
    assert (found.name, flag) == (name, "-march=native")
    assert bool(found.stands_for) == (processor in {"znver5", "emeraldrapids"})
    skylake = replace(IVY_BRIDGE, id="skylake-sp", name="Xeon Gold 6148")
    assert choose_architecture(skylake)[0].name == "SKX"
    assert choose_architecture(own, "zen2")[0].name == "ZEN2"
    with pytest.raises(InputError, match="expected one of SNB"):
        choose_architecture(own, "Z80")


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names the extra that has OSACA, and the compilers that were looked for."""
    nest = read_loop_nest(KERNELS["triad"], {})
    words = (KERNELS["triad"], nest, IVY_BRIDGE, {"N": 100})
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"kernelcast\[osaca\]"):
        compile_loop(*words)
    monkeypatch.undo()
    pytest.importorskip("osaca")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CC", "")
    with pytest.raises(InputError, match=r"install gcc or clang; looked for \$CC, cc"):
        compile_loop(*words)
