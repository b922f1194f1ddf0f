"""What the static analysis makes of the kernels of public sources, for `public_sources.py`."""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from rich.box import SIMPLE_HEAD
from rich.table import Table

from kernelcast.expressions.accesses import AddressPattern, MemoryAccess
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.analysis import analyse_parsed
from kernelcast.features.parsing import ParsedSource, list_kernels
from kernelcast.records.operations import MemorySpace

REPEATS = 3
GOAL_MS = 10.0
_PATTERNS = tuple(pattern.value for pattern in AddressPattern)
_SHORT = {
    "quasi-affine": "affine",
    "polynomial": "polyn.",
    "indirect": "indir.",
    "unknown": "unkn.",
}
_SHOWN_REASONS = 12
# The worst that one of a site's call paths knows is what counts for the site.
_WORST_FIRST = _PATTERNS[::-1]


@dataclass(slots=True, kw_only=True)
class AnalysisReport:
    """What the analysis made of one file; accesses are those of global memory.

    Parameters
    ----------
    kernels, gaps, accesses : int
        How many there are.
    exact : int
        Accesses whose addresses are exactly those described.
    sites_by_pattern, accesses_by_pattern : dict of str to int
        Places in the source, and the ways on which they are reached.
    reasons : dict of str to int
        Why addresses are unknown.
    unknowns : list of str
        Kernel, line, text and reason of each access that is not known.
    coverage : float
        Mean over the kernels.
    milliseconds : float
        Warm parse and analysis of all kernels; the median of three.
    exceptions : list of str
        What went wrong; there should be none.
    """

    kernels: int = 0
    gaps: int = 0
    accesses: int = 0
    exact: int = 0
    sites_by_pattern: dict[str, int] = field(default_factory=dict)
    accesses_by_pattern: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    unknowns: list[str] = field(default_factory=list)
    coverage: float = 1.0
    milliseconds: float = 0.0
    exceptions: list[str] = field(default_factory=list)


def report_analysis(parse: Callable[[], ParsedSource]) -> AnalysisReport:
    """Analyse every kernel of a source, several times for the clock."""
    report = AnalysisReport()
    times_s, facts = [], []
    for _ in range(REPEATS):
        started_s = time.perf_counter()
        facts, exceptions = _analyse_all(parse)
        times_s.append(time.perf_counter() - started_s)
        report.exceptions = exceptions
    report.milliseconds = round(statistics.median(times_s) * 1e3, 3)
    report.kernels = len(facts)
    report.coverage = statistics.fmean([one.coverage for one in facts]) if facts else 1.0
    patterns, sites, reasons = Counter[str](), Counter[str](), Counter[str]()
    for one in facts:
        report.gaps += len(one.gaps)
        own = [each for each in one.accesses if each.space is MemorySpace.GLOBAL]
        report.exact += sum(each.is_exact for each in own)
        patterns.update(each.pattern.value for each in own)
        sites.update(_patterns_of_sites(own))
        unknown = [each for each in own if each.pattern is AddressPattern.UNKNOWN]
        reasons.update(each.reason or "no reason given" for each in unknown)
        report.unknowns += [f"{one.kernel}:{e.line}: {e.text}: {e.reason}" for e in unknown]
    report.accesses = patterns.total()
    report.accesses_by_pattern, report.sites_by_pattern = dict(patterns), dict(sites)
    report.reasons = dict(reasons)
    return report


def _patterns_of_sites(accesses: Sequence[MemoryAccess]) -> Iterable[str]:
    by_site: dict[int, set[str]] = {}
    for one in accesses:
        by_site.setdefault(one.site, set()).add(one.pattern.value)
    return [next(one for one in _WORST_FIRST if one in found) for found in by_site.values()]


def _analyse_all(parse: Callable[[], ParsedSource]) -> tuple[list[KernelFacts], list[str]]:
    facts, exceptions = [], []
    parsed = parse()
    for name in list_kernels(parsed):
        try:
            facts.append(analyse_parsed(parsed, name).facts)
        except Exception as error:  # noqa: BLE001 - that there is none is what is measured
            exceptions.append(f"{name}: {type(error).__name__}: {error}")
    return facts, exceptions


def sum_up_analysis(reports: Sequence[AnalysisReport]) -> dict[str, float | int]:
    """Add up the reports of one suite."""
    sites = _add_up(one.sites_by_pattern for one in reports)
    accesses = _add_up(one.accesses_by_pattern for one in reports)
    times_ms = sorted(one.milliseconds for one in reports) or [0.0]
    total: dict[str, float | int] = {
        "kernels": sum(one.kernels for one in reports),
        "sites": sites.total(),
        "accesses": accesses.total(),
    }
    for pattern in _PATTERNS:
        total[f"{pattern} sites"] = _share(sites[pattern], sites.total())
        total[f"{pattern} accesses"] = _share(accesses[pattern], accesses.total())
    total["exact accesses"] = _share(sum(one.exact for one in reports), accesses.total())
    total["coverage"] = round(statistics.fmean(one.coverage for one in reports), 3)
    total["median_ms"] = round(statistics.median(times_ms), 2)
    total["90th_percentile_ms"] = round(times_ms[int(0.9 * (len(times_ms) - 1))], 2)
    total["files_above_goal"] = sum(one > GOAL_MS for one in times_ms)
    total["exceptions"] = sum(len(one.exceptions) for one in reports)
    return total


def _share(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 100.0


def make_analysis_table(totals: dict[str, dict[str, float | int]]) -> Table:
    """Show shares of global accesses by pattern, sites / accesses, one suite a row."""
    title = "Global accesses by pattern (% of sites / % of accesses), ms per file"
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("suite", no_wrap=True)
    for heading in ("kern.", "sites", *_SHORT.values(), "exact", "ms", "90 %", f">{GOAL_MS:.0f}"):
        table.add_column(heading, justify="right")
    for name, row in totals.items():
        shares = [f"{row[f'{one} sites']:.0f}/{row[f'{one} accesses']:.0f}" for one in _PATTERNS]
        rest = (row[key] for key in ("exact accesses", "median_ms", "90th_percentile_ms",
                                     "files_above_goal"))  # fmt: skip
        table.add_row(name, str(row["kernels"]), str(row["sites"]), *shares, *map(str, rest))
    return table


def find_commonest_reasons(reports: Iterable[AnalysisReport]) -> list[tuple[str, int]]:
    """Give the commonest reasons why addresses of global memory are unknown."""
    return _add_up(one.reasons for one in reports).most_common(_SHOWN_REASONS)


def _add_up(parts: Iterable[dict[str, int]]) -> Counter[str]:
    total = Counter[str]()
    for part in parts:
        total.update(part)
    return total
