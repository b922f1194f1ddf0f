"""The programs that documents show, run as a reader would run them: from the first to the last."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.device, pytest.mark.timeout(600)]
_ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
# The tutorial has its reader write these two files.
_TUTORIAL_FILES = {"saxpy.cl": "c", "saxpy.yaml": "yaml"}


@pytest.mark.parametrize(
    "document", ["tutorial.md", "how-to/pyopencl-objects.md", "how-to/schedule-with-estimates.md"]
)
def test_programs_of_documents_run(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that is shown fails, and what it prints are times."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path / "data"))
    text = (_ROOT / "docs" / document).read_text(encoding="utf-8")
    blocks = [(one["kind"], one["text"]) for one in _BLOCK.finditer(text)]
    (tmp_path / "examples").symlink_to(_ROOT / "examples")
    if document == "tutorial.md":
        for name, kind in _TUTORIAL_FILES.items():
            found = next(text for each, text in blocks if each == kind)
            (tmp_path / name).write_text(found, encoding="utf-8")
    program = "\n".join(text for kind, text in blocks if kind == "python")
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d\.\d", done.stdout)
