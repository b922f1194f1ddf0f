"""Prints the lines of Python of each room, of tests and of benchmarks, and checks their budget.

The budget stands in pyproject.toml. ``python tests/size_budget.py`` exits with 1 where a room is
over its number, where the numbers of ``src`` add up to more than they ever did, or where README
shows another sum. ``--lower`` takes today's counts where they are below the budget and writes
README's sentence.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
SETTINGS = ROOT / "pyproject.toml"
README = ROOT / "README.md"
PACKAGE = "src/kernelcast"
CORPUS = f"{PACKAGE}/training_data/corpus"
SENTENCE = re.compile(
    r"The package is at most [\d,]+ lines of Python, tests [\d,]+, benchmarks [\d,]+"
)


def count_lines(folder: str) -> int:
    """Count lines of Python below a folder as ``wc -l`` does, without kernels of the corpus."""
    return sum(
        path.read_bytes().count(b"\n")
        for path in (ROOT / folder).rglob("*.py")
        if CORPUS not in path.as_posix()
    )


def count_rooms() -> dict[str, int]:
    """Count the lines of each room; ``top`` are the modules beside them."""
    rooms = sorted(path for path in (ROOT / PACKAGE).iterdir() if any(path.rglob("*.py")))
    counts = {path.name: count_lines(f"{PACKAGE}/{path.name}") for path in rooms}
    top = sum(path.read_bytes().count(b"\n") for path in (ROOT / PACKAGE).glob("*.py"))
    return {
        **counts, "top": top, "tests": count_lines("tests"), "benchmarks": count_lines("benchmarks")
    }  # fmt: skip


def read_budget(text: str) -> dict[str, int]:
    """Read the budget from the text of pyproject.toml."""
    budget: dict[str, int] = tomllib.loads(text)["tool"]["kernelcast"]["size_budget"]
    return budget


def add_rooms(sizes: dict[str, int]) -> int:
    """Add up the rooms of the package."""
    return sum(lines for name, lines in sizes.items() if name not in {"tests", "benchmarks"})


def read_least_sum() -> int | None:
    """Find the lowest sum of the package's budget that any commit held; None without a history."""
    log = ["git", "log", "--format=%H", "-G", "size_budget|^[a-z_]+ = [0-9]+$", "--", SETTINGS.name]
    try:
        commits = subprocess.run(log, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    sums = []
    for commit in commits.split():
        show = ["git", "show", f"{commit}:{SETTINGS.name}"]
        text = subprocess.run(show, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        if "[tool.kernelcast.size_budget]" not in text:
            break
        sums.append(add_rooms(read_budget(text)))
    return min(sums, default=None)


def make_sentence(budget: dict[str, int]) -> str:
    """Write what README says of the budget."""
    return (
        f"The package is at most {add_rooms(budget):,} lines of Python, tests {budget['tests']:,},"
        f" benchmarks {budget['benchmarks']:,}"
    )


def lower(counts: dict[str, int], budget: dict[str, int]) -> dict[str, int]:
    """Write the lower of count and budget into pyproject.toml, and the sums into README."""
    lowered = {name: min(lines, counts[name]) for name, lines in budget.items() if name in counts}
    lines = "".join(f"{name} = {number}\n" for name, number in lowered.items())
    text = SETTINGS.read_text(encoding="utf-8")
    header = "[tool.kernelcast.size_budget]\n"
    begin = text.index(header) + len(header)
    end = re.compile(r"^$|\Z", re.MULTILINE).search(text, begin)
    assert end is not None
    SETTINGS.write_text(text[:begin] + lines + text[end.start() :], encoding="utf-8")
    readme = README.read_text(encoding="utf-8")
    README.write_text(SENTENCE.sub(make_sentence(lowered), readme), encoding="utf-8")
    return lowered


def main() -> int:
    """Print the table and what is wrong."""
    counts = count_rooms()
    budget = read_budget(SETTINGS.read_text(encoding="utf-8"))
    if "--lower" in sys.argv[1:]:
        budget = lower(counts, budget)
    for name, lines in sorted(counts.items(), key=lambda item: -item[1]):
        print(f"{name:>15} {lines:>8,} of {budget.get(name, 0):>8,}")
    print(f"{'src, the sum':>15} {add_rooms(counts):>8,} of {add_rooms(budget):>8,}")
    wrong = [
        f"{name} has {lines:,} lines, its budget is {budget.get(name, 0):,}: take lines out, or"
        f" move budget from another room of [tool.kernelcast.size_budget] in {SETTINGS.name}"
        for name, lines in counts.items()
        if lines > budget.get(name, 0)
    ]
    least = read_least_sum()
    if least is not None and add_rooms(budget) > least:
        wrong.append(
            f"the budget of src is {add_rooms(budget):,}, it was {least:,}: it may not grow"
        )
    if make_sentence(budget) not in README.read_text(encoding="utf-8"):
        wrong.append(
            f"README does not say {make_sentence(budget)!r}: python tests/size_budget.py --lower"
        )
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
