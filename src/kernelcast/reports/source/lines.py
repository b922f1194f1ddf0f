"""What each line of a kernel's source executes, of all that the kernel executes."""

from collections.abc import Iterator

from kernelcast.expressions.accesses import AddressPattern, MemoryAccess
from kernelcast.launches.features import KernelFeatures
from kernelcast.records.source_lines import LineFacts
from kernelcast.reports.source.counts import weigh
from kernelcast.reports.source.expressions import describe_request


class CountedLines:
    """The lines of a launch with their counts; measured ones where a device gave them.

    Parameters
    ----------
    features : KernelFeatures
        The launch.
    """

    def __init__(self, features: KernelFeatures) -> None:
        self.counters = features.best_counters
        self.facts: dict[int, LineFacts] = {one.line: one for one in features.lines}
        self._accesses = features.facts.accesses
        counts = self.counters.block_counts
        weights = {one.line: weigh(one.executed(counts)) for one in features.lines}
        total = sum(weights.values()) or 1.0
        self._shares = {line: weight / total for line, weight in weights.items()}
        self._requests = {one.site: one for one in self.counters.patterns}

    def count_runs(self, number: int) -> float:
        """Give how often a work-item executes a line that has facts."""
        return self.facts[number].executions(self.counters.block_counts)

    def share(self, number: int) -> float | None:
        """Give a line's share of all operations executed; None where it has no code."""
        return self._shares.get(number)

    def list_accesses(self, number: int) -> Iterator[MemoryAccess]:
        """Give the accesses of a line."""
        return (one for one in self._accesses if one.line == number)

    def describe_requests(self, access: MemoryAccess) -> str:
        """Say how a warp touches memory; nothing if nobody knows."""
        found = self._requests.get(access.site)
        return "" if found is None else describe_request(found)


def name_pattern(access: MemoryAccess) -> str:
    """Say what is known of an address; nothing where it follows from ids and loops alone."""
    return "" if access.pattern is AddressPattern.QUASI_AFFINE else str(access.pattern)
