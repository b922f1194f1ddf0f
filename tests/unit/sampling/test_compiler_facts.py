from types import SimpleNamespace
from typing import Any

import pytest

from kernelcast.records.compiler_facts import CompilerFacts
from kernelcast.records.kernel import Kernel
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling import saturation
from kernelcast.sampling.compiler_facts import describe_statistics, parse_opencl_version
from kernelcast.sampling.occupancy import parse_build_log
from kernelcast.sampling.ptx import PtxFacts
from kernelcast.sampling.saturation import make_unique, read_compiler_statistics

LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'kc_unique_5eed' for 'sm_90'
ptxas info    : Function properties for kc_unique_5eed
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers, used 0 barriers
ptxas info    : Compiling entry function 'gather' for 'sm_90'
ptxas info    : Function properties for gather
    1208 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 2048 bytes smem, 392 bytes cmem[0]
"""


class FakeSession:
    """A session of which only the extensions are asked for."""

    def __init__(self, *extensions: str) -> None:
        self.context = self.device = None
        self.description = SimpleNamespace(extensions=extensions)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[str, ...]]]:
    """Keep what is built, by a compiler that is silent on sources that it has seen before."""
    sources: list[tuple[str, tuple[str, ...]]] = []

    def _build(_context: None, _device: None, source: str, options: tuple[str, ...]) -> str:
        is_cached = (source, options) in sources
        sources.append((source, options))
        return "" if is_cached else LOG

    monkeypatch.setattr(saturation, "build_program", _build)
    monkeypatch.setattr(saturation, "read_build_log", lambda program, _: program)
    return sources


GATHER = Kernel(name="gather", source="kernel void gather() {}", build_options=("-DN=1",))


def test_compilers_caches_are_missed(built: list[tuple[str, tuple[str, ...]]]) -> None:
    """Gets the statistics in every session, whatever the compiler has in its cache."""
    sessions: list[Any] = [FakeSession("cl_nv_compiler_options") for _ in range(3)]
    found = [read_compiler_statistics(session, GATHER) for session in sessions]
    assert [one and one.registers_per_work_item for one in found] == [255] * 3
    assert {options for _, options in built} == {("-DN=1", "-cl-nv-verbose")}


def test_statistics_are_asked_for_once(built: list[tuple[str, tuple[str, ...]]]) -> None:
    """Builds once per kernel and session, and not at all where the option is not known."""
    session: Any = FakeSession("cl_nv_compiler_options")
    assert read_compiler_statistics(session, GATHER) == read_compiler_statistics(session, GATHER)
    assert len(built) == 1
    other: Any = FakeSession("cl_nv_device_attribute_query")
    assert read_compiler_statistics(other, GATHER) is None
    assert len(built) == 1


def test_names_what_log_and_ptx_say() -> None:
    """Reports what the log says of the kernel, and computes the rest from its PTX."""
    ptx = PtxFacts(virtual_register_count=300, instruction_count=120, depot_bytes=1200)
    facts = CompilerFacts(**describe_statistics(parse_build_log(LOG, "gather"), ptx))
    assert {name: trait.value for name, trait in facts.known.items()} == {
        "private_bytes_per_work_item": 1200,
        "registers_per_work_item": 255,
        "stack_frame_bytes_per_work_item": 1208,
        "spill_store_bytes_per_work_item": 12,
        "spill_load_bytes_per_work_item": 20,
        "ptx_virtual_register_count": 300,
        "ptx_instruction_count": 120,
    }
    assert facts.registers_per_work_item == Trait(value=255, source=TraitSource.REPORTED)
    assert facts.ptx_instruction_count == Trait(value=120, source=TraitSource.COMPUTED)


def test_silence_is_not_zero() -> None:
    """Knows nothing where the log is empty and the binary is no PTX."""
    assert describe_statistics(parse_build_log("", "gather"), None) == {}


def test_unique_sources_keep_their_lines() -> None:
    """Adds a kernel of its own after whatever a source may end in, and moves no line of it."""
    for end in ("}", "} // remark", "}\n#define X \\", "}\n"):
        source = f"kernel void k(void) {{{end}"
        unique = make_unique(source, "0a1b")
        assert unique.startswith(source)
        assert unique.splitlines()[-2:] == ["", "kernel void kc_unique_0a1b(void) {}"]
        assert make_unique(source, "2c3d") != unique


def test_versions_compare_as_numbers() -> None:
    """Orders versions as numbers, and takes what it cannot read for the oldest."""
    assert parse_opencl_version("OpenCL 3.1 (Build 0)") == (3, 1)
    assert parse_opencl_version("OpenCL 1.10 x") > parse_opencl_version("OpenCL 1.2 y")
    assert parse_opencl_version("FULL_PROFILE") == (0, 0)
