"""The scratchpad model beside every figure of SW26010 that its paper's text states.

``python benchmarks/scratchpad.py`` needs no device. *Inputs* says what a figure of ours rests on:
numbers that the paper publishes, or a description of a kernel that we chose so that it fits, which
shows that the model can say so and no more. Writes ``results/scratchpad``.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from matplotlib.figure import Figure

from kernelcast.analytic.scratchpad.kernel import Copy, Direction, DmaRequest, ScratchpadKernel
from kernelcast.analytic.scratchpad.model import (
    count_groups,
    double_buffer_saving,
    list_cpe_counts,
    model_kernel,
    request_overlap,
    request_parallelism,
    vary_cpes,
    vary_granularity,
)
from kernelcast.launches.modelling.scratchpad import find_scratchpad, read_scratchpad_kernel

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks/results/scratchpad"
KERNELS = ROOT / "examples/scratchpad/kernels"
PUBLISHED, CHOSEN = "published numbers", "a description of ours"
# N-body, Fig. 8, in microseconds.
COMP, DMA, OVERLAP, GROUPS = 975.0, 695.0, 571.4, 8
SW26010 = find_scratchpad("sw26010")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the paper says, and what the model makes of it."""

    what: str
    paper: float
    ours: float
    inputs: str
    is_measured: bool = False
    """Whether the paper's is a measurement; else it is what its own model says."""


def compare_nbody() -> list[Figures]:
    """Compare N-body (Fig. 8): times of the version with double buffering, in microseconds."""
    overlaps = [request_overlap(GROUPS, requests, DMA) for requests in (16, 17)]
    saved = [double_buffer_saving(GROUPS, time, COMP, OVERLAP) for time in (DMA / 2, DMA)]
    total = DMA + COMP - OVERLAP  # equation 1
    said = (
        ("T_total by equation 1 (us)", 1100.0, total, True),
        ("T_total by equation 1 (us)", 1098.6, total, False),
        ("T_overlap by equation 8, 16 requests (us)", OVERLAP, overlaps[0], False),
        ("T_overlap by equation 8, 17 requests (us)", OVERLAP, overlaps[1], False),
        ("saved by double buffering, copy-in alone (us)", 42.0, saved[0], True),
        ("saved by double buffering, equation 14 as printed (us)", 42.0, saved[1], True),
    )
    return [
        Figures(what=f"N-body: {what}", paper=paper, ours=ours, inputs=PUBLISHED, is_measured=real)
        for what, paper, ours, real in said
    ]


def compare_groups() -> list[Figures]:
    """Compare virtual groups of 64 CPEs with requests far larger than a transaction."""
    transactions = 1e4
    whole = request_parallelism(transactions, 64, SW26010)
    bytes_per_cycle = SW26010.bandwidth_bytes_per_s / SW26010.clock_hz
    printed = SW26010.delay_cycles * bytes_per_cycle / SW26010.transaction_bytes
    return [
        Figures(what="NG of 64 CPEs, MRP a whole number", paper=16,
                ours=count_groups(64, whole), inputs=PUBLISHED),
        Figures(what="NG of 64 CPEs, equation 10 as printed", paper=16,
                ours=-(-64 // printed), inputs=PUBLISHED),
    ]  # fmt: skip


def compare_kernels() -> list[Figures]:
    """Compare K-means (Fig. 7a) and WRF (Fig. 9), whose inputs nobody publishes."""
    kmeans = read_scratchpad_kernel(KERNELS / "kmeans.yaml")
    steps = {one.parts: one for one in vary_granularity(kmeans, SW26010)}
    whole, eighth = (steps[parts].terms.t_total_s for parts in (1, 8))
    sweep = vary_cpes(
        lambda cpes: read_scratchpad_kernel(KERNELS / "wrf-dynamics.yaml", active_cpes=cpes),
        64, [one for one in list_cpe_counts(SW26010) if one <= 64], SW26010,
    )  # fmt: skip
    times = {one.active_cpes: one.terms.t_total_s for one in sweep.points}
    return [
        Figures(what="K-means: faster by requests of 32 elements instead of 256 (%)", paper=20,
                ours=100 * (whole / eighth - 1), inputs=CHOSEN, is_measured=True),
        Figures(what="WRF dynamics: fastest number of CPEs up to 64", paper=48,
                ours=sweep.best.active_cpes, inputs=CHOSEN, is_measured=True),
        Figures(what="WRF dynamics: 48 CPEs faster than 64 (%)", paper=10,
                ours=100 * (times[64] / times[48] - 1), inputs=CHOSEN, is_measured=True),
    ]  # fmt: skip


def bound_gains() -> list[tuple[float, float]]:
    """Give what requests of an eighth gain, by the ratio of computation to copying.

    Nothing is chosen here but large requests: what the model says of any such kernel.
    """
    copies = tuple(
        DmaRequest(name=one, direction=one, copies=(Copy(bytes=16384),), count=1)
        for one in Direction
    )
    kernel = ScratchpadKernel(name="any", active_cpes=64, dma=copies, compute={"fixed": 1.0})
    t_dma = model_kernel(kernel, SW26010).dma.time_s
    gains = []
    for ratio in (0.1 * step for step in range(1, 41)):
        work = replace(kernel, compute={"fixed": ratio * t_dma * SW26010.clock_hz})
        steps = {one.parts: one.terms.t_total_s for one in vary_granularity(work, SW26010)}
        gains.append((ratio, steps[1] / steps[8] - 1))
    return gains


def write(found: list[Figures], gains: list[tuple[float, float]]) -> None:
    """Write results, a table and a picture."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    content = {"figures": [asdict(one) for one in found], "gains": gains}
    (FOLDER / "results.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    ratios = [ratio for ratio, gain in gains if gain >= 0.2]
    lines = [
        "# The scratchpad model beside its paper's figures",
        "",
        "| figure | paper | which is | ours | deviation | inputs |",
        "|---|---|---|---|---|---|",
        *(
            f"| {one.what} | {one.paper:g} | {'measured' if one.is_measured else 'its model'} | "
            f"{one.ours:.5g} | {100 * (one.ours / one.paper - 1):+.1f} % | {one.inputs} |"
            for one in found
        ),
        "",
        "Requests of an eighth gain 20 %, as the paper measured at most, where computation takes "
        f"{min(ratios):.1f} to {max(ratios):.1f} times as long as copying; the most "
        f"that the model allows is {100 * max(gain for _, gain in gains):.0f} %.",
    ]
    (FOLDER / "summary.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([ratio for ratio, _ in gains], [100 * gain for _, gain in gains], label="model")
    axes.axhline(20, color="black", linestyle=":", label="K-means, measured, at most")
    axes.set(xlabel="computation over copying, time", ylabel="gain by requests of an eighth (%)")
    axes.legend()
    figure.savefig(FOLDER / "granularity.png", dpi=110, metadata={"Software": None})


def main() -> None:
    """Compare all, and write it."""
    write([*compare_nbody(), *compare_groups(), *compare_kernels()], bound_gains())
    print((FOLDER / "summary.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
