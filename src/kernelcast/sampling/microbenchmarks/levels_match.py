"""Joins cache levels as walks found them with those that the operating system reports."""

import math
from dataclasses import dataclass, replace

from kernelcast.records.machine import CacheFacts
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.microbenchmarks.fits import CacheLevel, Interval, LatencyFit
from kernelcast.sampling.microbenchmarks.host_caches import HostCache, make_reported_facts
from kernelcast.sampling.microbenchmarks.reference import LEAST_SPREAD

# A step belongs to a reported cache if their sizes are within this factor ...
_SAME = 4.0
# ... and they agree if within this one.
_AGREE = 2.0
_ORIGIN = "walk/global"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedCaches:
    """Caches with what is odd about them."""

    caches: tuple[CacheFacts, ...]
    """Nearest first."""
    remarks: dict[str, str]
    """Disagreements, and what was not found."""


def match_caches(fit: LatencyFit, host_caches: tuple[HostCache, ...]) -> MatchedCaches:
    """Join measured levels with reported ones.

    Parameters
    ----------
    host_caches : tuple of HostCache
        Reported; empty for devices that are not this host's processors: then levels are
        numbered as they were found.
    """
    if not host_caches:
        caches = tuple(
            _make_measured(CacheFacts(name=f"L{number}"), level, None)
            for number, level in enumerate(fit.levels, start=1)
        )
        return MatchedCaches(caches=caches, remarks={})
    chosen = _choose_pairs(fit, host_caches)
    remarks = _list_remarks(fit, host_caches, chosen)
    caches = tuple(
        _make_measured(make_reported_facts(cache), fit.levels[chosen[cache.name]], cache)
        if cache.name in chosen
        else make_reported_facts(cache)
        for cache in host_caches
    )
    return MatchedCaches(caches=caches, remarks=remarks)


def _choose_pairs(fit: LatencyFit, host_caches: tuple[HostCache, ...]) -> dict[str, int]:
    """Pair each cache with the nearest step, the nearest pairs first."""
    distances = sorted(
        (abs(math.log(level.capacity_bytes.value / cache.size_bytes)), cache.name, index)
        for index, level in enumerate(fit.levels)
        for cache in host_caches
    )
    chosen: dict[str, int] = {}
    for distance, name, index in distances:
        is_free = name not in chosen and index not in chosen.values()
        if is_free and distance <= math.log(_SAME):
            chosen[name] = index
    return chosen


def _list_remarks(
    fit: LatencyFit, host_caches: tuple[HostCache, ...], chosen: dict[str, int]
) -> dict[str, str]:
    remarks = {}
    for cache in host_caches:
        if cache.name not in chosen:
            remarks[f"caches/{cache.name}/latency_s"] = (
                f"no step of the random walk is near the {cache.size_bytes} bytes that the "
                "operating system reports"
            )
            continue
        size = fit.levels[chosen[cache.name]].capacity_bytes.value
        if abs(math.log(size / cache.size_bytes)) > math.log(_AGREE):
            remarks[f"caches/{cache.name}/agreement"] = (
                f"measured {size:.0f} bytes, the operating system reports {cache.size_bytes}: "
                "others may use the cache, or a hypervisor may give a part of it"
            )
    for index, level in enumerate(fit.levels):
        if index not in chosen.values():
            remarks[f"caches/step at {level.capacity_bytes.value:.0f} bytes"] = (
                "a step of the random walk belongs to no cache that the operating system "
                "reports: translation buffers or neighbours"
            )
    return remarks


def _make_measured(facts: CacheFacts, level: CacheLevel, reported: HostCache | None) -> CacheFacts:
    said = f"; the operating system reports {reported.size_bytes} bytes" if reported else ""
    return replace(
        facts,
        size_bytes=_measure_size(level.capacity_bytes, f"{_ORIGIN}{said}"),
        latency_s=as_measured(level.latency_s, _ORIGIN),
    )


def _measure_size(interval: Interval, origin: str) -> Trait[int]:
    return Trait(
        value=round(interval.value),
        source=TraitSource.MEASURED,
        low=math.floor(interval.low),
        high=math.ceil(interval.high),
        origin=origin,
    )


def as_measured(interval: Interval, origin: str) -> Trait[float]:
    """Give a fitted time or rate as a trait; a fit cannot know how far the clock drifts."""
    return Trait(
        value=interval.value,
        source=TraitSource.MEASURED,
        low=min(interval.low, interval.value / (1 + LEAST_SPREAD)),
        high=max(interval.high, interval.value * (1 + LEAST_SPREAD)),
        origin=origin,
    )
