"""Commands run in this process."""

from pathlib import Path

from click.testing import CliRunner, Result

from kernelcast.cli import app


def run_command(*words: str | Path | float) -> Result:
    """Run `kernelcast` with these words; standard output and error are apart."""
    return CliRunner().invoke(app, [*map(str, words)])
