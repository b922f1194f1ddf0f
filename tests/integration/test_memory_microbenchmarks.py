"""The memory microbenchmarks on every device: numbers, or reasons."""

from collections.abc import Callable, Iterator

import pytest

from kernelcast.records.device import DeviceKind, Trait
from kernelcast.records.machine import CacheFacts
from kernelcast.sampling.microbenchmarks.bench import BenchmarkResult
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

NAMES = ("caches", "latency", "gathers", "bandwidth", "transfers")
Runner = Callable[..., BenchmarkResult]


def _list_traits(result: BenchmarkResult) -> Iterator[Trait[float] | Trait[int]]:
    for cache in result.caches:
        yield from filter(None, (cache.size_bytes, cache.latency_s, cache.load_bytes_per_s))
    for memory in result.memories:
        yield from memory.load_bytes_per_s.values()
        yield from filter(None, (memory.latency_s, memory.copy_bytes_per_s))
    yield from result.costs.values()


@pytest.mark.parametrize("name", NAMES)
def test_numbers_or_reasons(session: DeviceSession, run_benchmark: Runner, name: str) -> None:
    """Each benchmark gives positive numbers within their intervals, or says why it does not."""
    result = run_benchmark(session, name)
    traits = list(_list_traits(result))
    assert traits or result.not_obtained
    for trait in traits:
        assert trait.value > 0
        assert (trait.low or trait.value) <= trait.value <= (trait.high or trait.value)
        assert trait.origin
    assert all(reason for reason in result.not_obtained.values())


def _list_latencies(result: BenchmarkResult) -> list[float]:
    latencies = [cache.latency_s.value for cache in result.caches if cache.latency_s]
    return latencies + [one.latency_s.value for one in result.memories if one.latency_s]


def test_cache_latencies_increase(session: DeviceSession, run_benchmark: Runner) -> None:
    """A farther cache takes longer, and memory beyond all caches longest."""

    def increase(result: BenchmarkResult) -> bool:
        latencies = _list_latencies(result)
        return bool(latencies) and latencies == sorted(latencies)

    result = run_benchmark(session, "caches", increase)
    assert increase(result), (_list_latencies(result), result.not_obtained)


def test_nearest_cache_size(session: DeviceSession, run_benchmark: Runner) -> None:
    """On a CPU the measured size of the nearest cache is within a factor of two of the system's."""
    if session.description.kind is not DeviceKind.CPU:
        pytest.skip("the operating system reports the caches of CPUs only")

    def find_nearest(result: BenchmarkResult) -> list[CacheFacts]:
        return [cache for cache in result.caches if cache.name == "L1"]

    def is_right(result: BenchmarkResult) -> bool:
        return all(
            one.reported_size_bytes is None
            or (one.size_bytes and 0.5 <= one.size_bytes.value / one.reported_size_bytes.value <= 2)
            for one in find_nearest(result)
        ) and bool(find_nearest(result))

    result = run_benchmark(session, "caches", is_right)
    nearest = find_nearest(result)
    if nearest and nearest[0].reported_size_bytes is None:
        pytest.skip("the operating system does not report its caches")
    assert is_right(result), (nearest, result.not_obtained)


def test_every_element_size(session: DeviceSession, run_benchmark: Runner) -> None:
    """Loads of 1 to 16 bytes, as in the paper, have a bandwidth or a reason."""
    result = run_benchmark(session, "bandwidth")
    (memory,) = result.memories
    for size in (1, 2, 4, 8, 16):
        reason = result.not_obtained.get(f"memories/global/load_bytes_per_s/{size}")
        assert size in memory.load_bytes_per_s or reason
