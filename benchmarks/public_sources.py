"""How much of the public OpenCL sources the analysis of `features` understands, and how fast.

Takes folders or git directories, bare ones too: ``python benchmarks/public_sources.py --json OUT
FOLDER_OR_GITDIR ...``. Every .cl file is parsed alone, without the -D options of its host program;
files it includes are looked for in its folder and the folders above, where its program may run.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

from analysis_reports import (
    AnalysisReport,
    find_commonest_reasons,
    make_analysis_table,
    report_analysis,
    sum_up_analysis,
)  # fmt: skip
from machine import describe_machine
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

from kernelcast.features.parsing import ParsedSource, list_kernels, parse_source
from kernelcast.records.errors import KernelcastError

REPEATS = 5
CLEAN, NEEDS_MACROS, REFUSED = "clean", "needs host macros", "error"
EXPORTED = (".cl", ".h", ".clh", ".hpp", ".inc")
_ERROR_SEVERITY = 3
# The table's columns, narrow enough for 80 signs; the JSON file has all under their full names.
_HEADINGS = {
    "files": "files", "kernels": "kernels", "listed": "files_with_kernels", "clean": CLEAN,
    "no -D": NEEDS_MACROS, "error": REFUSED, "given -D": "clean_with_stand_ins",
    "ms": "median_clean_parse_ms", "most": "largest_clean_parse_ms",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFile:
    """A source file of a suite, and where files that it includes may lie."""

    suite: str
    name: str
    source: str
    include_folders: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """What the parser made of one file."""

    suite: str
    name: str
    lines: int
    kernels: tuple[str, ...]
    outcome: str
    language: str = ""
    first_error: str = ""
    lacking_names: tuple[str, ...] = ()
    is_clean_with_stand_ins: bool = False
    parse_ms: float = 0.0
    analysis: AnalysisReport = field(default_factory=AnalysisReport)


def main() -> None:
    """Analyse every file of every suite, print the totals and write the reports."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="file for the reports")
    parser.add_argument("suites", nargs="+", type=Path, help="folders or git directories")
    options = parser.parse_args()
    console = Console()
    with ExitStack() as stack:
        files, missing = read_suites(options.suites, stack)
        reports = [analyse_file(one) for one in track(files, "Parsing", console=console)]
    totals = sum_up(reports, missing)
    analysed = sum_up_analyses(reports)
    console.print(make_table(totals))
    for report in reports:
        if report.outcome != CLEAN:
            print(f"{report.suite}/{report.name}: {describe(report)}")
    print_analyses(console, reports, analysed)
    if options.json:
        content = {
            "machine": describe_machine() | {"libclang": version("libclang")},
            "totals": totals,
            "analysis": analysed,
            "files": [asdict(report) for report in reports],
        }
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_suites(paths: Sequence[Path], stack: ExitStack) -> tuple[list[PublicFile], dict[str, int]]:
    """Read all files, and count the blobs that each git directory lacks."""
    files: list[PublicFile] = []
    missing: dict[str, int] = {}
    for path in paths:
        folder = path
        if is_git_directory(path):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            missing[name_suite(path)] = export_sources(path, folder)
        files += read_files(name_suite(path), folder)
    return files, missing


def analyse_file(file: PublicFile) -> FileReport:
    """Parse one file and time it; what else is found out about a file belongs here."""
    lines = file.source.count("\n") + 1
    try:
        parsed = parse(file)
    except KernelcastError as error:
        return FileReport(
            suite=file.suite, name=file.name, lines=lines, kernels=(), outcome=REFUSED,
            first_error=str(error),
        )  # fmt: skip
    lacking_names, is_clean_with_stand_ins = fill_in(parsed)
    outcome = CLEAN if parsed.is_clean else NEEDS_MACROS if lacking_names else REFUSED
    return FileReport(
        suite=file.suite, name=file.name, lines=lines, kernels=list_kernels(parsed),
        outcome=outcome, language=parsed.language, first_error="".join(parsed.errors[:1]),
        lacking_names=lacking_names, is_clean_with_stand_ins=is_clean_with_stand_ins,
        parse_ms=round(time_parse(file) * 1e3, 3),
        analysis=report_analysis(lambda: parse(file)),
    )  # fmt: skip


def parse(file: PublicFile, build_options: Sequence[str] = ()) -> ParsedSource:
    """Parse a file with its include folders."""
    folders = [f"-I{shlex.quote(str(one))}" for one in file.include_folders]
    return parse_source(file.source, [*build_options, *folders], source_name=Path(file.name).name)


def time_parse(file: PublicFile) -> float:
    """Time a warm parse: the median of five, in seconds."""
    times_s = []
    for _ in range(REPEATS):
        started_s = time.perf_counter()
        parse(file)
        times_s.append(time.perf_counter() - started_s)
    return statistics.median(times_s)


def fill_in(parsed: ParsedSource) -> tuple[tuple[str, ...], bool]:
    """Give the names that nothing declares, and tell whether they are all that a file lacks."""
    is_clean = all(one.severity < _ERROR_SEVERITY for one in parsed.unit.diagnostics)
    return tuple(one.name for one in parsed.stand_ins), is_clean


def is_git_directory(path: Path) -> bool:
    """Tell a git directory, bare or the .git of a work tree, from an ordinary folder."""
    return (path / "HEAD").is_file() and (path / "objects").is_dir()


def name_suite(path: Path) -> str:
    """Name a suite after its folder, leaving out names that git or a mirror gave."""
    parts = [part for part in path.resolve().parts if part not in (".git", "repo")]
    return parts[-1].rpartition("+")[2].removesuffix(".git")


def export_sources(git_directory: Path, folder: Path) -> int:
    """Write the sources and headers of the newest commit; return how many blobs are missing."""
    listing = run_git(git_directory, ["ls-tree", "-r", "-z", "HEAD"]).decode(errors="replace")
    missing = 0
    for entry in listing.split("\0"):
        facts, _, name = entry.partition("\t")
        if not name.endswith(EXPORTED) or " blob " not in facts:
            continue
        try:
            content = run_git(git_directory, ["cat-file", "blob", facts.split()[2]])
        except subprocess.CalledProcessError:
            missing += 1
            continue
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return missing


def run_git(git_directory: Path, arguments: list[str]) -> bytes:
    """Run git on a directory; a blob that a partial copy lacks is not asked for elsewhere."""
    return subprocess.run(
        ["git", "--git-dir", str(git_directory), *arguments],
        capture_output=True,
        check=True,
        env={**os.environ, "GIT_NO_LAZY_FETCH": "1"},
    ).stdout


def read_files(suite: str, folder: Path) -> Iterable[PublicFile]:
    """Read the .cl files of a folder; bytes that are not UTF-8 are in comments, and replaced."""
    for path in sorted(folder.rglob("*.cl")):
        above = [one for one in path.parents if one == folder or folder in one.parents]
        yield PublicFile(
            suite=suite,
            name=path.relative_to(folder).as_posix(),
            source=path.read_text(encoding="utf-8", errors="replace"),
            include_folders=tuple(above),
        )


def sum_up(
    reports: Sequence[FileReport], missing: dict[str, int]
) -> dict[str, dict[str, float | int]]:
    """Count outcomes by suite, and over all of them."""
    suites = {name: [one for one in reports if one.suite == name] for name in
              dict.fromkeys(one.suite for one in reports)}  # fmt: skip
    totals = {name: count(rows, missing.get(name, 0)) for name, rows in suites.items()}
    totals["all"] = count(reports, sum(missing.values()))
    return totals


def count(rows: Sequence[FileReport], missing: int) -> dict[str, float | int]:
    """Count what became of the files of one suite; times are of clean files, parsed once."""
    times_ms = [one.parse_ms for one in rows if one.outcome == CLEAN] or [0.0]
    return {
        "files": len(rows),
        "missing_blobs": missing,
        "kernels": sum(len(one.kernels) for one in rows),
        "files_with_kernels": sum(bool(one.kernels) for one in rows),
        CLEAN: sum(one.outcome == CLEAN for one in rows),
        NEEDS_MACROS: sum(one.outcome == NEEDS_MACROS for one in rows),
        REFUSED: sum(one.outcome == REFUSED for one in rows),
        "clean_with_stand_ins": sum(one.is_clean_with_stand_ins for one in rows),
        "median_clean_parse_ms": round(statistics.median(times_ms), 2),
        "largest_clean_parse_ms": round(max(times_ms), 2),
    }


def sum_up_analyses(reports: Sequence[FileReport]) -> dict[str, dict[str, float | int]]:
    """Add up what the analysis made of each suite, and of all of them."""
    names = dict.fromkeys(one.suite for one in reports)
    totals = {
        name: sum_up_analysis([one.analysis for one in reports if one.suite == name])
        for name in names
    }
    return totals | {"all": sum_up_analysis([one.analysis for one in reports])}


def print_analyses(
    console: Console, reports: Sequence[FileReport], totals: dict[str, dict[str, float | int]]
) -> None:
    """Print the shares, why addresses are unknown, and what went wrong."""
    console.print(make_analysis_table(totals))
    for reason, times in find_commonest_reasons(one.analysis for one in reports):
        print(f"{times:5d} x {reason}")
    for report in reports:
        for exception in report.analysis.exceptions:
            print(f"{report.suite}/{report.name}: {exception}")


def make_table(totals: dict[str, dict[str, float | int]]) -> Table:
    """Show the totals, one suite a row."""
    title = "Public OpenCL sources: files, and ms of a warm parse of clean ones"
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("suite", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    for name, row in totals.items():
        table.add_row(name, *(str(row[key]) for key in _HEADINGS.values()))
    return table


def describe(report: FileReport) -> str:
    """Say in one line what a file lacks."""
    if report.outcome == NEEDS_MACROS:
        return f"needs host macros {', '.join(report.lacking_names[:8])}"
    return report.first_error


if __name__ == "__main__":
    main()
