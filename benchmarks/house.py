"""Prints what the house is like: lines of each room, files, functions, records, constants.

``python -m benchmarks house BEFORE [AFTER]`` compares two commits; without a second one the files
as they are. Kernels of the corpus do not count.
"""

import ast
import io
import re
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/kernelcast"
FOLDERS = (PACKAGE, "tests", "benchmarks")
CORPUS = f"{PACKAGE}/training_data/corpus/"
WORD = re.compile(r"\b[A-Za-z_]\w*\b")
FEW_FILES = 3
SHORT_LINES = 60


def read_commit(commit: str) -> dict[str, str]:
    """Read the Python files of a commit by their paths."""
    archive = ["git", "archive", "--format=tar", commit, *FOLDERS]
    content = subprocess.run(archive, cwd=ROOT, check=True, capture_output=True).stdout
    files = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for member in tar:
            file = tar.extractfile(member)
            if file is not None and member.name.endswith(".py"):
                files[member.name] = file.read().decode()
    return files


def read_tree() -> dict[str, str]:
    """Read the Python files as they are."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def name_room(path: str) -> str:
    """Name the room of a file.

    >>> name_room("src/kernelcast/cli/app.py"), name_room("src/kernelcast/__main__.py")
    ('cli', 'top')
    >>> name_room("tests/unit/cli/test_tune.py")
    'tests'
    """
    parts = PurePosixPath(path).parts
    return parts[0] if parts[0] != "src" else parts[2] if len(parts) > 3 else "top"


def measure(files: Mapping[str, str]) -> dict[str, float]:
    """Measure lines per room, and what the package is made of."""
    files = {path: text for path, text in files.items() if not path.startswith(CORPUS)}
    figures: Counter[str] = Counter()
    for path, text in files.items():
        figures[f"lines of {name_room(path)}"] += text.count("\n")
    own = {path: text for path, text in files.items() if path.startswith(PACKAGE)}
    trees = {path: ast.parse(text) for path, text in own.items()}
    words = Counter(word for text in own.values() for word in WORD.findall(text))
    spread = Counter(word for text in own.values() for word in set(WORD.findall(text)))
    lengths, records, helpers = [], [], []
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lengths.append((node.end_lineno or node.lineno) - node.lineno + 1)
                if node.name.startswith("_") and not node.name.endswith("__"):
                    helpers.append(node.name)
            elif isinstance(node, ast.ClassDef) and _is_record(node):
                records.append(node.name)
    return {
        **dict(sorted(figures.items(), key=lambda item: -item[1])),
        "lines of src": sum(text.count("\n") for text in own.values()),
        "files of src": len(own),
        f"files of src below {SHORT_LINES} lines": sum(
            text.count("\n") < SHORT_LINES for text in own.values()
        ),
        "functions": len(lengths),
        "median lines of a function": median(lengths),
        "records": len(records),
        f"records named in fewer than {FEW_FILES} files": sum(
            spread[name] < FEW_FILES for name in records
        ),
        "private functions that are used once": sum(words[name] == 2 for name in helpers),
        "numeric constants of modules": sum(
            _is_number(node) for tree in trees.values() for node in _list_values(tree)
        ),
    }


def _is_record(node: ast.ClassDef) -> bool:
    names = {ast.unparse(one).partition("(")[0].rpartition(".")[2] for one in node.decorator_list}
    return bool(names & {"dataclass", "define", "frozen"})


def _list_values(tree: ast.Module) -> Iterator[ast.expr]:
    """List what names of a module stand for; each part of a tuple that is taken apart."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            is_split = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)
            parts = node.value.elts if is_split and isinstance(node.value, ast.Tuple) else ()
            yield from parts or (node.value,)


def _is_number(node: ast.expr) -> bool:
    """Tell whether an expression is of numbers only: ``16 << 20``, ``-1e-3``."""
    allowed = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    return all(
        isinstance(one, allowed)
        or (isinstance(one, ast.Constant) and type(one.value) in {int, float})
        for one in ast.walk(node)
    )


def main() -> None:
    """Print a table of both."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    before = measure(read_commit(sys.argv[1]))
    after = measure(read_commit(sys.argv[2]) if len(sys.argv) > 2 else read_tree())
    print(f"{'':45} {'before':>9} {'after':>9}")
    for name in dict.fromkeys((*after, *before)):
        print(f"{name:45} {before.get(name, 0):>9,.0f} {after.get(name, 0):>9,.0f}")


if __name__ == "__main__":
    main()
