"""The runner of benchmarks."""

import doctest
import subprocess
import sys
from pathlib import Path

import harness
import numpy as np
import static_estimates

from kernelcast.models.evidence.model import load_shipped


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run the runner as its users do."""
    command = [sys.executable, "-m", "benchmarks", *words]
    root = Path(__file__).parents[2]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_lists_benchmarks_and_runs_one_by_its_name() -> None:
    """Shows a line for each benchmark, hands options on, and refuses other names."""
    listed = run()
    assert listed.returncode == 0
    assert "  scheduler  " in listed.stdout
    assert "--busy" in run("scheduler", "--help").stdout
    refused = run("schedular")
    assert refused.returncode == 1
    assert "there is no benchmark 'schedular'" in refused.stderr


def test_intervals_that_are_shipped_were_calibrated_on_the_rows_that_are() -> None:
    """The shipped errors of the analytic model are made anew of the shipped rows."""
    rows = static_estimates.read_observations([static_estimates.MODELLED])
    found = static_estimates.calibrate_runtimes(static_estimates.choose_runs(rows))
    shipped = load_shipped()
    assert found.keys() == shipped.keys()
    assert all(np.allclose(found[one].scores, shipped[one].scores, atol=1e-4) for one in found)


def test_tables_are_markdown() -> None:
    """Aligns numbers to the right and leaves out what is missing."""
    assert not doctest.testmod(harness).failed
