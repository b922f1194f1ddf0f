"""Runs the commands of README.md word for word, as somebody who has just cloned the repository.

``python tests/readme_commands.py`` clones the committed state into an empty folder, makes an empty
virtual environment and an empty home, and runs every line of the shell blocks there, in order, but
`make test`. The exit status says whether all went well. `.ci/run` calls it.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = {"make test"}
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PIN = re.compile(r"^[\w.-]+==[^\\\n]+", re.MULTILINE)
# How this machine reaches its registries and where it keeps what it has fetched.
_KEPT = re.compile(r"PIP_\w+|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|https?_proxy|no_proxy", re.IGNORECASE)


def list_commands(text: str) -> Iterator[str]:
    """List the commands of a document's shell blocks, without their comments."""
    for block in _BLOCK.findall(text):
        for line in block.splitlines():
            if words := shlex.split(line, comments=True):
                yield shlex.join(words) if "#" in line else line.strip()


def make_environment(folder: Path) -> Mapping[str, str]:
    """Make an empty home and an empty virtual environment; give what a new shell there knows."""
    home = folder / "home"
    home.mkdir()
    venv.create(folder / "venv", with_pip=True)
    # A release of yesterday must not turn this red.
    lock = (ROOT / "requirements-ci.txt").read_text(encoding="utf-8")
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(_PIN.findall(lock)), encoding="utf-8")
    cache = os.environ.get("XDG_CACHE_HOME", str(Path("~/.cache").expanduser()))
    return {
        "PIP_CACHE_DIR": f"{cache}/pip",
        **{name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)},
        "PIP_CONSTRAINT": str(constraints),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": f"{folder / 'venv/bin'}:{os.defpath}:/usr/local/bin",
    }


def main() -> int:
    """Run all commands."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = [one for one in list_commands(text) if one not in LEFT_OUT]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = make_environment(folder)
        clone = folder / "kernelcast"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        for command in commands:
            began = time.monotonic()
            sys.stdout.write(f"$ {command}\n")
            sys.stdout.flush()
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command], cwd=clone, env=environment, check=False
            )
            took_s = time.monotonic() - began
            sys.stdout.write(f"({took_s:.0f} s, exit status {done.returncode})\n")
            if done.returncode:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
