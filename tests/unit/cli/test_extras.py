"""What works without the packages that are extras, what names the one that it needs, what waits."""

import subprocess
import sys
from pathlib import Path

import pytest

from kernelcast.records.errors import EXTRAS

_ROOT = Path(__file__).resolve().parents[3]
_BARE = f"""
import sys
sys.modules |= dict.fromkeys({sorted(EXTRAS)!r})  # an import of any fails as if it were absent
from kernelcast.cli import main
main()
"""
_LOOP = str(_ROOT / "examples/loops/2d-5pt.c")
_SIZES = ("-D", "N", "100", "-D", "M", "100")
_TRIAD = str(_ROOT / "examples/triad/triad.yaml")


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _BARE, *words], capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ["corpus", "ls"],
        ["data", "ls"],
        ["model", "gpu", _TRIAD, "--machine", "a100"],
        ["models", "ls"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_core_installation_does_what_needs_no_extra(words: list[str]) -> None:
    """Lists, models and reads without any of the large packages."""
    done = _run(*words)
    assert "is not installed" not in done.stderr
    assert "internal error" not in done.stderr
    assert done.returncode == 0 or "observations.sqlite" in done.stderr  # there is no store yet


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["data", "import", str(_ROOT / "README.md")], "data"),
        (["serve"], "service"),
        (["serve", "token", "create", "me"], "service"),
        (
            ["model", "cpu", _LOOP, "--machine", "skylake-sp", "--cache-predictor", "sim", *_SIZES],
            "train",
        ),
    ],
    ids=lambda one: one[0] if isinstance(one, list) else "",
)
def test_a_command_names_the_extra_that_it_needs(words: list[str], extra: str) -> None:
    """Says what to install, in one line, as an error of the input."""
    done = _run(*words)
    assert done.returncode == 2
    assert f"'kernelcast[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr


_LIGHT = "import kernelcast"
_VERSION = """
import contextlib
from kernelcast.cli import app
with contextlib.suppress(SystemExit):
    app(["--version"])
"""
_HEAVY = {
    "cattrs", "clang", "fastapi", "httpx", "islpy", "jinja2", "joblib", "matplotlib", "numba",
    "numpy", "pandas", "pyarrow", "pydantic", "pyopencl", "scipy", "sklearn", "sqlalchemy", "yaml",
}  # fmt: skip


@pytest.mark.parametrize("code", [_LIGHT, _VERSION], ids=["import", "version"])
def test_no_library_is_loaded_before_it_is_needed(code: str) -> None:
    """`import kernelcast` and `kernelcast --version` load none of the large libraries."""
    told = f"{code}\nimport sys\nprint('loaded:', *{_HEAVY} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].strip() == "loaded:"
