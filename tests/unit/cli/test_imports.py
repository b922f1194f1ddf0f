"""What is not needed is not imported: NumPy alone takes longer than all of the program's frame."""

import subprocess
import sys

import pytest

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
