"""Launches of made-up kernels whose samples and sizes err as they are told to."""

import math

import numpy as np

from kernelcast.models.evidence.calibration import EvidenceRow
from kernelcast.models.evidence.fusion import Kind
from kernelcast.models.evidence.model import SIGNS, SampledMoment
from kernelcast.models.evidence.sizes import MEASURES, KnownSize

KERNELS, SIZES = 30, 5
SAMPLE_SD = 0.08


def make_moment(
    log_seconds: float, moment: str = "now", *, log_error: float = 0.0
) -> SampledMoment:
    """Make samples that say a time, and the logarithm of the line's relative error."""
    signs = (log_error, *(0.0 for _ in SIGNS[1:]))
    return SampledMoment(moment=moment, log_seconds=log_seconds, signs=signs)


def make_size(
    log_items: float, log_seconds: float, *, at_s: float = 0.0, noise: float = 0.02
) -> KnownSize:
    """Make a known size of which the work-items are known, and its working set in bytes."""
    return KnownSize(
        log_work=(log_items, *(math.nan,) * (len(MEASURES) - 1)),
        log_seconds=log_seconds,
        noise=noise,
        at_s=at_s,
        working_set_bytes=4 * math.exp(log_items),
    )


def make_rows(seed: int = 0) -> list[EvidenceRow]:
    """Make launches: samples 5 % too slow and of 8 % noise, sizes that scatter by 2 %."""
    draw = np.random.default_rng(seed)
    rows = []
    for kernel in range(KERNELS):
        rate = draw.normal(-17.0, 1.0)
        for size in range(SIZES):
            log_items = 15.0 + 0.3 * size
            log_s = log_items + rate + draw.normal(0.0, 0.02)
            told = log_s + 0.05 + draw.normal(0.0, SAMPLE_SD, 2)
            rows.append(
                EvidenceRow(
                    kernel=f"k{kernel}",
                    size=make_size(log_items, log_s, at_s=60.0 * size),
                    moments=tuple(make_moment(one, f"m{place}") for place, one in enumerate(told)),
                    plain={Kind.ANALYTIC: log_s + draw.normal(0.3, 0.5)},
                    runs=(log_s + draw.normal(0.0, 0.01),),
                )
            )
    return rows
