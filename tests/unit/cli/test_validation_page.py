import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kernelcast.models.validation.report import ModelRows, ValidationReport, list_rows, score_rows
from kernelcast.records.training_table import TrainingTable
from kernelcast.reports.presenter import save_page
from kernelcast.reports.validation import PUBLISHED, present_validation
from support.synthetic_rows import make_rows


def make_report(
    table: TrainingTable, models: tuple[str, ...] = ("linear", "hybrid"), seed: int = 0
) -> ValidationReport:
    """Make a report of answers that are drawn, not predicted."""
    rng = np.random.default_rng(seed)
    rows = list_rows(table, table.kernels, [_draw(table, name, rng) for name in models])
    scores, rankings = score_rows(table, rows)
    return ValidationReport(
        split="kernel", coverage=0.9, schema_id="v1-abc", data_digest="0123456789abcdef",
        versions={"numpy": "2.4"}, refused={"history on device-0": "no launch <twice>"},
        scores=scores, rankings=rankings, rows=rows,
    )  # fmt: skip


def _draw(table: TrainingTable, name: str, rng: np.random.Generator) -> ModelRows:
    spread = np.abs(rng.standard_t(2, size=len(table))) * 0.02
    seconds = table.seconds * np.exp(rng.choice([-1, 1], size=len(table)) * spread)
    seconds = table.linear_s if name == "linear" else seconds
    width = np.exp(0.02 + rng.exponential(0.04, size=len(table)))
    low, high = seconds / width, seconds * width
    return ModelRows(
        model=name, seconds=tuple(seconds.tolist()), low=tuple(low.tolist()),
        high=tuple(high.tolist()), in_domain=tuple((rng.uniform(size=len(table)) < 0.95).tolist()),
    )  # fmt: skip


def make_points(device: str) -> pd.DataFrame:
    """Make the scores of five sampling points and the default."""
    return pd.DataFrame([
        {
            "device": device, "label": f"{point}, {point + 1}" if point else "default",
            "multiple": point, "rows": 70, "mean": 0.08 / (point or 4),
            "median": 0.03 / (point or 4), "p90": 0.2, "cost": 0.01 + 0.02 * point,
        }
        for point in (1, 2, 3, 4, 5, 0)
    ])  # fmt: skip


@pytest.fixture(scope="module")
def table() -> TrainingTable:
    """Give rows of a few kernels on two devices."""
    return make_rows(kernels=5, sizes=3, devices=2)


def write(folder: Path, report: ValidationReport, points: pd.DataFrame | None = None) -> str:
    """Write a page and give its text."""
    save_page(folder / "page.html", "Validation", *present_validation(report, points))
    return (folder / "page.html").read_text()


def test_a_page_has_every_part(table: TrainingTable, tmp_path: Path) -> None:
    """Holds the report's numbers, the paper's as its own, and figures per device, in one file."""
    report = make_report(table)
    page = write(tmp_path, report, make_points("device-0"))
    assert page.count("<svg") == 2 + 2 + 1  # bars and ratios of both, points of one
    assert "Table 3), families" in write(tmp_path, replace(report, split="family"))
    for part in (
        "Mean error by device", "Which device is fastest", "Table 3", "Fig. 11, 12 and 14",
        "Fig. 15", "worst of hybrid", "What could not be trained", "no launch &lt;twice&gt;",
        "Noise floor", "5, 6", "GTX 280", "7.19 %", "GTX 580 (paper)", "+5.06", "10 %",
    ):  # fmt: skip
        assert part in page, part
    for one in report.scores:
        assert one.errors is not None
        assert one.coverage is not None
        assert f"{one.errors.mean * 100:.2f} %" in page
        assert f"{one.coverage * 100:.1f} %" in page
    assert not re.search(r"<(?:script|link|img)\b|(?:src|href)=\"(?!#)", page)
    assert [one.name for one in PUBLISHED] == ["GTX 280", "GTX 580", "GTX 680", "HD 6970"]


def test_a_page_of_many_kernels_cuts_bars(tmp_path: Path) -> None:
    """Bars that stick out are cut and labelled, and over sixty kernels take two charts."""
    many = make_rows(kernels=70, sizes=1)
    huge = np.where(np.arange(len(many)) == 3, 9 * many.linear_s, many.linear_s)
    page = write(tmp_path, make_report(many.assign(linear_s=huge)))
    svg = page[page.index("<svg") : page.index("</svg>")]
    assert all(f"kernel{number}<" in svg for number in range(70))
    measured = many.seconds[3]
    assert f"{abs(huge[3] - measured) / measured * 100:.1f} %" in svg


def test_a_model_without_answers_has_no_pictures(table: TrainingTable, tmp_path: Path) -> None:
    """Where the model to show answered nothing, tables say so and pictures are left out."""
    report = make_report(table)
    none = (None,) * len(table)
    rows = ModelRows(
        model="hybrid", seconds=none, low=none, high=none, in_domain=(False,) * len(table)
    )
    answers = replace(report.rows, models=(report.rows.models[0], rows))
    scores, _ = score_rows(table, answers)
    page = write(tmp_path, replace(report, scores=scores, rows=answers))
    assert "<svg" not in page
    assert "worst of hybrid" not in page
