"""The package as a program imports it."""

import json
import logging
import subprocess
import sys
from importlib.metadata import version

import kernelcast


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )


def test_the_version_is_that_of_the_installed_package() -> None:
    """Says the version of the package's metadata, and lists it among its names."""
    assert kernelcast.__version__ == version("kernelcast")
    assert "__version__" in dir(kernelcast)


def test_importing_reads_no_metadata() -> None:
    """Looks the version up when it is asked for."""
    code = "import json, sys, kernelcast; print(json.dumps('importlib.metadata' in sys.modules))"
    assert json.loads(_run(code).stdout) is False


def test_a_program_without_logging_is_told_nothing() -> None:
    """Writes warnings nowhere until the program says where they go."""
    code = "import logging, kernelcast; logging.getLogger('kernelcast.part').warning('careful')"
    assert _run(code).stderr == ""


def test_a_program_with_logging_is_told() -> None:
    """Passes warnings on to the handlers of the program."""
    code = (
        "import logging, kernelcast; logging.basicConfig(format='%(name)s: %(message)s');"
        "logging.getLogger('kernelcast.part').warning('careful')"
    )
    assert _run(code).stderr == "kernelcast.part: careful\n"


def test_there_is_one_handler_and_it_is_silent() -> None:
    """Sets nothing up but the handler that the standard library asks libraries for."""
    code = "import logging, kernelcast; print(logging.getLogger('kernelcast').handlers)"
    assert _run(code).stdout == "[<NullHandler (NOTSET)>]\n"
    assert logging.getLogger("kernelcast").propagate


def test_the_command_line_shows_warnings() -> None:
    """Shows on standard error what the library warns of."""
    code = (
        "import logging, sys; from kernelcast.cli import main; sys.argv = ['kernelcast', '-h']\n"
        "try: main()\n"
        "except SystemExit: logging.getLogger('kernelcast.part').warning('careful')"
    )
    assert _run(code).stderr == "careful\n"
