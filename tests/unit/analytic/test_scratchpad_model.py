from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kernelcast.analytic.scratchpad import (
    Copy,
    Direction,
    Request,
    ScratchpadKernel,
    buffer_doubly,
    list_cpe_counts,
    model_kernel,
    plan_timeline,
    vary_cpes,
    vary_granularity,
)
from kernelcast.launches.modelling.scratchpad import find_scratchpad, read_scratchpad_kernel
from kernelcast.records.errors import InputError

KERNELS = Path(__file__).resolve().parents[3] / "examples/scratchpad/kernels"
SW26010 = find_scratchpad("SW26010")


def make_kernel(
    *, size: float = 1024, requests: float = 8, floating: float = 1e4, gloads: float = 0
) -> ScratchpadKernel:
    """Make a kernel whose DMA requests copy half of the data in, half out."""
    both = [
        Request(name=one, direction=one, copies=(Copy(bytes=size),), count=requests / 2)
        for one in Direction
        if requests
    ]
    return ScratchpadKernel(
        name="k",
        active_cpes=64,
        dma=tuple(both),
        gloads=(Request(name="g", copies=(Copy(bytes=8),), count=gloads),) if gloads else (),
        compute={"floating": floating},
    )


kernels = st.builds(
    make_kernel,
    size=st.floats(1, 60000),
    requests=st.sampled_from([0, 2, 3, 8, 100]),
    floating=st.floats(1, 1e7),
    gloads=st.sampled_from([0, 1, 50, 1e5]),
)


def example(name: str) -> Callable[[int], ScratchpadKernel]:
    return lambda cpes: read_scratchpad_kernel(KERNELS / f"{name}.yaml", active_cpes=cpes)


@given(kernels)
def test_nothing_is_faster_than_its_slowest_part(kernel: ScratchpadKernel) -> None:
    """Takes at least as long as memory or computation alone, at most as long as both."""
    found = model_kernel(kernel, SW26010)
    assert found.t_mem_s == pytest.approx(found.dma.time_s + found.gload.time_s)
    least, most = max(found.t_mem_s, found.t_comp_s), found.t_mem_s + found.t_comp_s
    assert least * (1 - 1e-9) <= found.t_total_s <= most * (1 + 1e-9)
    assert 0 <= found.t_overlap_s <= found.t_comp_s
    assert 0 <= found.copy_in_s <= found.dma.time_s * (1 + 1e-9)


def test_double_buffering_is_useless_where_all_overlaps() -> None:
    """Saves nothing in Scenario 2."""
    kernel = make_kernel(floating=100)
    assert model_kernel(kernel, SW26010).is_fully_overlapped
    assert buffer_doubly(kernel, SW26010)["saving_s"] == 0


def test_kernels_are_fastest_on_48_or_on_all_cpes() -> None:
    """Shows Fig. 9: memory bound, 48 CPEs beat all others of a core group, and 64 by about 10 %;
    compute bound, more CPEs are always better, beyond a core group as well."""
    counts = list_cpe_counts(SW26010)
    within = [one for one in counts if one <= 64]
    bound, refused = vary_cpes(example("wrf-dynamics"), 64, within, SW26010)
    best = min(bound, key=lambda one: one.terms.t_total_s)
    assert (best.number, refused) == (48, [])
    assert (best.equation_s or 0) > 0
    terms = {one.number: one.terms for one in bound}
    assert terms[64].t_total_s / terms[48].t_total_s == pytest.approx(1.10, abs=0.02)
    assert terms[64].dma.time_s > terms[48].dma.time_s
    below = [terms[count].t_total_s for count in counts if count <= 32]
    assert below == sorted(below, reverse=True)
    points, _ = vary_cpes(example("wrf-physics"), 64, counts, SW26010)
    times = [one.terms.t_total_s for one in points]
    assert times == sorted(times, reverse=True)
    assert {one.equation_s for one in points if one.number < 64} == {0.0}
    assert {one.equation_s for one in points if one.number > 64} == {None}


def test_smaller_requests_are_faster() -> None:
    """Shows Fig. 7a: up to 20 % from 256 elements per request down to 32, as equation 13 bounds."""
    steps = vary_granularity(read_scratchpad_kernel(KERNELS / "kmeans.yaml"), SW26010)
    assert [one.number for one in steps] == [1, 2, 4, 8]
    times = [one.terms.t_total_s for one in steps]
    assert times == sorted(times, reverse=True)
    assert times[0] / times[-1] == pytest.approx(1.2, abs=0.02)
    assert len({round(one.terms.dma.time_s * 1e12) for one in steps}) == 1
    assert all(one.saving_s <= (one.equation_s or 0.0) + 1e-12 for one in steps)
    assert steps[-1].terms.kernel.smallest_copy_bytes == 256


@given(kernels)
def test_timeline_agrees_with_the_equations(kernel: ScratchpadKernel) -> None:
    """Memory idles after the copy-ins of one round as long as no computation hides it."""
    assume(kernel.dma)
    terms = model_kernel(kernel, SW26010)
    spans, rounds = plan_timeline(terms)
    compute = terms.t_comp_s / rounds
    hidden = (terms.dma.groups - 1) * terms.dma.latency_s
    assert len(spans["compute"]) == terms.dma.groups
    idle = spans["copy out"][0][0] - spans["copy in"][-1][1]
    assert idle == pytest.approx(max(0.0, compute - hidden), abs=1e-12)


def test_requests_are_timed_by_the_papers_equations() -> None:
    """64 CPEs, a transaction each: 64 * 256 B / 32 GB/s = 742.4 cycles; of one CPE L_base = 220.

    Rows of 64 bytes take a transaction each, those of 300 two; four at a time take 3 * 50 cycles
    more than one; (100*9 + 50*1 + 30*3 + 2*34) / 4 = 277 cycles of instructions.
    """
    copies = (Copy(bytes=1024, chunk_bytes=64), Copy(bytes=600, chunk_bytes=300))
    rows = Request(name="rows", direction=Direction.IN, copies=copies, count=10)
    kernel = ScratchpadKernel(
        name="k", active_cpes=64, dma=(rows,), average_ilp=4,
        gloads=(Request(name="g", copies=(Copy(bytes=8),), count=10),),
        compute={"floating": 100, "fixed": 50, "spm": 30, "div_sqrt": 2},
    )  # fmt: skip
    found, alone = (model_kernel(replace(kernel, active_cpes=one), SW26010) for one in (64, 1))
    cycles = SW26010.clock_hz
    assert (found.dma.average_mrt, found.gload.average_mrt) == (20, 1)
    assert found.dma.latency_s * cycles == pytest.approx(220 + 19 * 50)
    assert found.dma.time_s * cycles == pytest.approx(10 * 20 * 742.4)
    assert found.gload.time_s * cycles == pytest.approx(10 * 742.4)
    assert alone.gload.time_s * cycles == pytest.approx(10 * 220)
    assert found.t_comp_s * cycles == pytest.approx(277)
    assert found.gload.parallelism == pytest.approx(18.9655, abs=1e-4)
    assert (found.gload.groups, found.dma.groups) == (4, 13)
    assert found.gload.overlap_s == pytest.approx(3 / 4 * 9 / 10 * found.gload.time_s)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (make_kernel(size=70000), "70,000 bytes; a scratchpad of SW26010 holds 65,536"),
        (replace(make_kernel(), active_cpes=257), "257 active CPEs: SW26010 has 256"),
        (
            replace(
                make_kernel(), gloads=(Request(name="wide", copies=(Copy(bytes=64),), count=1),)
            ),
            "moves 64 bytes; SW26010 moves at most 32",
        ),
    ],
)
def test_impossible_requests_are_refused(kernel: ScratchpadKernel, words: str) -> None:
    with pytest.raises(InputError, match=words):
        model_kernel(kernel, SW26010)


def test_numbers_of_cpes_that_do_not_fit_are_told() -> None:
    """Leaves them out of a sweep, with the reason; refuses a sweep without any left."""
    points, refused = vary_cpes(example("wrf-dynamics"), 64, [4, 64], SW26010)
    assert [one.number for one in points] == [64]
    assert refused[0][0] == 4
    assert "scratchpad" in refused[0][1]
    with pytest.raises(InputError, match="no number of active CPEs is possible"):
        vary_cpes(example("wrf-dynamics"), 64, [4], SW26010)
