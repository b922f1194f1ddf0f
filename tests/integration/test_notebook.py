"""The notebook of the examples, executed as its readers execute it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelcast.models.validation.comparison import MethodComparison
from kernelcast.records.training_table import TrainingTable
from kernelcast.training import comparing
from kernelcast.training.settings import ValidationSettings

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebook"
NOTEBOOK = FOLDER / "estimates.ipynb"
PAPER = FOLDER / "sampling_paper.ipynb"
_LIMIT_S = 240


def _outputs(cells: list[dict[str, Any]], kind: str) -> list[str]:
    """Give what cells show, as texts of one kind."""
    return [
        "".join(output["data"][kind])
        for cell in cells
        for output in cell.get("outputs", ())
        if kind in output.get("data", {})
    ]


@pytest.mark.parametrize("path", [NOTEBOOK, PAPER], ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path: Path) -> None:
    """Hold what is to be run, and nothing of the machine they were last run on."""
    content = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert code
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)
    assert content["metadata"]["kernelspec"]["name"] == "python3"


@pytest.mark.device
# Jupyter's own packages warn of what they will change; a notebook's errors are errors all the same.
@pytest.mark.filterwarnings("default")
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs from the first cell to the last and shows an estimate, a table and a plot."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path / "data"))  # no observations of earlier runs
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=_LIMIT_S, kernel_name="python3", resources={"metadata": {"path": FOLDER}}
    ).execute()
    estimate, table = _outputs(notebook.cells, "text/html")
    assert "<svg" in estimate
    assert all(name in table for name in ("nbody", "triangular", "relative_error"))
    assert "NaN" not in table
    assert len(_outputs(notebook.cells, "image/png")) == 1


def test_the_papers_table_and_figures_follow_from_shipped_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notebook's code runs without a device; its tables have ours beside the paper's."""
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    compare = comparing.compare_table

    def compare_in_two_folds(  # it has ten, and takes its time
        table: TrainingTable, methods: Sequence[str], settings: ValidationSettings, **more: int
    ) -> MethodComparison:
        return compare(table, methods, replace(settings, folds=2), **more)

    monkeypatch.setattr(comparing, "compare_table", compare_in_two_folds)
    cells = json.loads(PAPER.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    exec(compile("\n".join(code), str(PAPER), "exec"), names)
    table, papers = names["table_3"], names["papers"]
    assert len(table) == 3 * 3
    assert table["kernels"].sum() == len(names["kernels"])
    own = table.dropna()
    assert (own["linear"].groupby("device").is_monotonic_increasing).all()
    assert papers.loc[("GTX 280 (paper)", "5-10 %"), "gain"] == 0.035
    points = names["points"]
    assert [*points["multiple"]] == [1, 2, 3, 4, 5, 0]
    assert (points["cost"] > 0).all()
    assert {*names["comparison"].methods} == {"linear", "learned", "analytic"}
    matplotlib.pyplot.close("all")
