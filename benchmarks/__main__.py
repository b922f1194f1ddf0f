"""Runs a benchmark by its name: ``python -m benchmarks NAME [options]``; without one, lists them.

A benchmark is a module of this folder with a ``main``. Its options are its own (``--help``); what
it finds goes to ``benchmarks/results``.
"""

import ast
import runpy
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def list_benchmarks() -> dict[str, str]:
    """List benchmarks with the first line of what they say of themselves."""
    benchmarks = {}
    for path in sorted(FOLDER.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path.stem != "__main__" and '__name__ == "__main__"' in text:
            benchmarks[path.stem] = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    return benchmarks


def main() -> None:
    """Run the benchmark that the first argument names."""
    benchmarks = list_benchmarks()
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in benchmarks:
        width = max(map(len, benchmarks))
        print("usage: python -m benchmarks NAME [options]\n")
        print("\n".join(f"  {one:{width}}  {title}" for one, title in benchmarks.items()))
        sys.exit(f"\nthere is no benchmark {name!r}" if name else 0)
    path = FOLDER / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    if {"-h", "--help"} & {*sys.argv[2:]} and "argparse" not in text:  # it would run
        print(ast.get_docstring(ast.parse(text)))
        return
    sys.argv = [str(path), *sys.argv[2:]]
    sys.path.insert(0, str(FOLDER))
    started_s = time.perf_counter()
    runpy.run_path(str(path), run_name="__main__")
    print(f"{name}: {time.perf_counter() - started_s:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
