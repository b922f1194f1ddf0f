from dataclasses import replace

import pytest

from kernelcast.analytic.cpu.in_core import (
    InCoreTerms,
    ask_osaca,
    predict_by_table,
)
from kernelcast.analytic.cpu.machine import CpuMachine, StreamRates, read_machine
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.features.loop_nest import read_loop_nest
from kernelcast.launches.machines import find_machine
from kernelcast.records.device import Trait, TraitSource
from kernelcast.records.errors import InputError
from kernelcast.records.machine import InstructionFacts
from kernelcast.records.operations import NumberClass, Operation, OperationCounts, OperationKind

LOOP = "double a[N], b[N], c[N], s; for (int i = 0; i < N; i++) "
TRIAD = read_loop_nest(LOOP + "a[i] = b[i] + s * c[i];", {})
SUM = read_loop_nest(LOOP + "s += a[i];", {})
IVY = read_machine(find_machine("ivy-bridge-ep"))
BODY = """.L4:
  vmovupd (%rsi,%rax), %ymm0
  vaddpd 8(%rsi,%rax), %ymm0, %ymm0
  vmovupd %ymm0, (%rcx,%rax)
  addq $32, %rax
  cmpq %rdi, %rax
  jne .L4
"""


def test_adds_up_operations_and_loads() -> None:
    """Takes 16 flops at 8 a cycle, and 16 loads of 8 bytes at 93.1 GB/s."""
    terms = predict_by_table(IVY, TRIAD, 8)
    assert terms.overlapping == pytest.approx(2.0)
    assert terms.non_overlapping == pytest.approx(128 / (93.1 / 3))
    assert (terms.coverage, terms.latency, terms.notes) == (1.0, 0.0, ())
    assert terms.cycles == terms.non_overlapping


def with_latency(machine: CpuMachine, seconds: float) -> CpuMachine:
    latency = {1: Trait(value=seconds, source=TraitSource.MEASURED)}
    facts = replace(machine.instructions["fp64"], completion_latency_s=latency)
    return replace(machine, instructions={"fp64": facts})


def test_a_chain_costs_its_latency() -> None:
    """Waits three cycles for each of eight additions, which is longer than their throughput."""
    terms = predict_by_table(with_latency(IVY, 1e-9), SUM, 8)
    assert terms.latency == pytest.approx(24)
    assert terms.hidden == terms.latency > terms.overlapping
    unknown = predict_by_table(IVY, SUM, 8)
    assert unknown.latency == 0
    assert any(
        "whose latency is not known; the time is a lower bound" in one for one in unknown.notes
    )


def test_what_is_not_known_is_not_free_in_silence() -> None:
    bare = replace(IVY, instructions={"fp64": InstructionFacts(name="fp64")})
    terms = predict_by_table(bare, TRIAD, 8)
    assert terms.coverage == 0
    assert any("lower bound" in note and "instructions-fp64" in note for note in terms.notes)
    with pytest.raises(InputError, match="load bandwidth of L1"):
        predict_by_table(replace(IVY, streams=StreamRates()), TRIAD, 8)


def test_fused_operations_count_twice_and_integers_have_ports_of_their_own() -> None:
    """Sums floating-point work, and takes the longer of both kinds."""
    sky = read_machine(find_machine("skylake-sp"))
    peak = Trait(value=20 * 2.4e9 * 2, source=TraitSource.MEASURED)
    machine = replace(
        sky,
        instructions={**sky.instructions, "int32": InstructionFacts(name="int32", peak_per_s=peak)},
    )
    fused = Operation(kind=OperationKind.FUSED, number=NumberClass.FLOAT, bits=64)
    whole = Operation(kind=OperationKind.ADD, number=NumberClass.INTEGER, bits=32)
    for counts, cycles in (({fused: 4.0}, 2.0), ({fused: 4.0, whole: 4.0}, 16.0)):
        nest = replace(SUM, chain=(), executed=OperationCounts(operations=counts, memory={}))
        assert predict_by_table(machine, nest, 8).overlapping == pytest.approx(cycles)


def test_refuses_impossible_terms() -> None:
    with pytest.raises(InputError, match="none below 0"):
        InCoreTerms(overlapping=-1, non_overlapping=0, provider="x")


def osaca(body: str, architecture: str = "IVB", nest: LoopNest = TRIAD) -> InCoreTerms:
    pytest.importorskip("osaca")
    return ask_osaca(body, architecture=architecture, iterations=4)(nest, 8)


def test_osaca_reads_a_loop() -> None:
    """Splits ports into load paths and others, two passes for a line of eight iterations; reports
    a partly covered loop as such, with the instruction."""
    terms = osaca(BODY)
    assert (terms.coverage, terms.notes) == (1.0, ())
    # Two 32-byte loads over two 16-byte paths, twice, as the paper's T_nOL counts them.
    assert terms.non_overlapping == pytest.approx(4.0)
    assert terms.overlapping > 0
    assert osaca(BODY, "SKX").non_overlapping == pytest.approx(2.0)
    unknown = osaca(BODY.replace("vaddpd", "vfrobpd"))
    assert unknown.coverage == pytest.approx(5 / 6)
    assert "vfrobpd" in unknown.notes[0]
    assert "lower bounds, coverage 83 %" in unknown.notes[0]


def test_osaca_refuses_what_it_cannot_read() -> None:
    """Names architectures, and asks for a loop body."""
    with pytest.raises(InputError, match="does not know architecture Z80; it knows"):
        osaca(BODY, "z80")
    with pytest.raises(InputError, match="holds no instructions"):
        osaca(".L4:\n")
    with pytest.raises(InputError, match="executes 0 iterations"):
        ask_osaca(BODY, architecture="IVB", iterations=0)


def test_osaca_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    """Says how to install it."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"kernelcast\[osaca\]"):
        ask_osaca(BODY, architecture="IVB", iterations=4)
