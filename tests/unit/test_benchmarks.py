"""The runner of benchmarks."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run the runner as its users do."""
    command = [sys.executable, "-m", "benchmarks", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_lists_benchmarks_and_runs_one_by_its_name() -> None:
    """Shows a line for each benchmark, hands options on, and refuses other names."""
    listed = run()
    assert listed.returncode == 0
    assert "  scheduler  " in listed.stdout
    assert "--busy" in run("scheduler", "--help").stdout
    assert "results/static_estimates.json" in run("static_estimates", "--help").stdout
    refused = run("schedular")
    assert refused.returncode == 1
    assert "there is no benchmark 'schedular'" in refused.stderr


def test_intervals_that_are_shipped_were_calibrated_on_the_rows_that_are() -> None:
    """The shipped errors of the analytic model are made anew of the shipped rows."""
    code = """
import numpy as np, static_estimates as made
from kernelcast.models.evidence.stored import load_shipped
runs = made.choose_runs(made.read_observations([made.MODELLED]))
found, shipped = made.calibrate_runtimes(runs), load_shipped()
assert found.keys() == shipped.keys()
assert all(np.allclose(found[one].scores, shipped[one].scores, atol=1e-4) for one in found)
"""
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT / "benchmarks", check=False).returncode == 0


def test_tables_are_markdown() -> None:
    """Aligns numbers to the right and leaves out what is missing."""
    code = "import doctest, harness; assert not doctest.testmod(harness).failed"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT / "benchmarks", check=False).returncode == 0
