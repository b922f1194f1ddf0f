"""The package as a program imports it."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import kernelcast

WARN = "logging.getLogger('kernelcast.part').warning('careful')"
SHOW = "logging.basicConfig(format='%(name)s: %(message)s')"


def test_the_version_is_that_of_the_installed_package() -> None:
    """Says the version of the package's metadata, and lists it among its names."""
    assert kernelcast.__version__ == version("kernelcast")
    assert "__version__" in dir(kernelcast)


@pytest.mark.parametrize(
    ("code", "stdout", "stderr"),
    [
        ("print('importlib.metadata' in sys.modules)", "False\n", ""),
        (WARN, "", ""),
        (f"{SHOW}; {WARN}", "", "kernelcast.part: careful\n"),
        (
            "ours = logging.getLogger('kernelcast'); print(ours.handlers, ours.propagate)",
            "[<NullHandler (NOTSET)>] True\n", "",
        ),
        (
            "from kernelcast.cli import main; sys.argv = ['kernelcast', '-h']; sys.stdout = None\n"
            f"try: main()\nexcept SystemExit: {WARN}", "", "careful\n",
        ),
    ],
    ids=["no metadata is read", "nothing is told", "a program's handlers are told",
         "the only handler is silent", "the command line shows warnings"],
)  # fmt: skip
def test_importing_sets_up_nothing_but_a_silent_handler(
    code: str, stdout: str, stderr: str
) -> None:
    """As the standard library asks of libraries: the program says where warnings go."""
    code = f"import logging, sys, kernelcast; {code}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert (done.stdout, done.stderr) == (stdout, stderr)
