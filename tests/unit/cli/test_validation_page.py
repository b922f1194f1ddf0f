import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kernelcast.models.validation.report import ValidationReport, score_rows
from kernelcast.records.training_table import TrainingTable
from kernelcast.reports.presenter import save_page
from kernelcast.reports.validation import PUBLISHED, present_validation
from kernelcast.training.settings import ALL_ROWS, ValidationSettings
from kernelcast.training.training import validate_models
from support.synthetic_rows import make_rows

TABLE = make_rows(kernels=5, sizes=3, devices=2)


def validate(table: TrainingTable, *models: str) -> ValidationReport:
    return validate_models(table, ValidationSettings(models=models, rows=ALL_ROWS, jobs=1))


@pytest.fixture(scope="module")
def report() -> ValidationReport:
    """Give the report of two models on two devices, one of which lacks history."""
    refused = {"history on device-0": "no launch <twice>"}
    return replace(validate(TABLE, "linear", "ridge"), refused=refused)


def make_points(device: str) -> pd.DataFrame:
    return pd.DataFrame([
        {
            "device": device, "label": f"{point}, {point + 1}" if point else "default",
            "multiple": point, "rows": 70, "mean": 0.08 / (point or 4),
            "median": 0.03 / (point or 4), "p90": 0.2, "cost": 0.01 + 0.02 * point,
        }
        for point in (1, 2, 3, 4, 5, 0)
    ])  # fmt: skip


def write(folder: Path, report: ValidationReport, points: pd.DataFrame | None = None) -> str:
    save_page(folder / "page.html", "Validation", *present_validation(report, points))
    return (folder / "page.html").read_text()


def test_a_page_has_every_part(report: ValidationReport, tmp_path: Path) -> None:
    """Holds the report's numbers, the paper's as its own, and figures per device, in one file."""
    page = write(tmp_path, report, make_points(report.scores[0].device))
    assert page.count("<svg") == 2 + 2 + 1  # bars and ratios of both, points of one
    assert "Table 3), families" in write(tmp_path, replace(report, split="family"))
    for part in (
        "Mean error by device", "Which device is fastest", "Table 3", "Fig. 11, 12 and 14",
        "Fig. 15", "worst of ridge", "What could not be trained", "no launch &lt;twice&gt;",
        "Noise floor", "5, 6", "GTX 280", "7.19 %", "GTX 580 (paper)", "+5.06", "10 %",
    ):  # fmt: skip
        assert part in page, part
    for one in report.scores:
        assert one.errors is not None
        assert f"{one.errors['mean'] * 100:.2f} %" in page
        assert one.coverage is None or f"{one.coverage * 100:.1f} %" in page
    assert not re.search(r"<(?:script|link|img)\b|(?:src|href)=\"(?!#)", page)
    assert [*PUBLISHED] == ["GTX 280", "GTX 580", "GTX 680", "HD 6970"]


def test_a_page_of_many_kernels_cuts_bars(tmp_path: Path) -> None:
    """Bars that stick out are cut and labelled, and over sixty kernels take two charts."""
    many = make_rows(kernels=70, sizes=1)
    huge = np.where(np.arange(len(many)) == 3, 9 * many.linear_s, many.linear_s)
    page = write(tmp_path, validate(many.assign(linear_s=huge), "linear"))
    svg = page[page.index("<svg") : page.index("</svg>")]
    assert all(f"kernel{number}<" in svg for number in range(70))
    measured = many.seconds[3]
    assert f"{abs(huge[3] - measured) / measured * 100:.1f} %" in svg


def test_a_model_without_answers_has_no_pictures(report: ValidationReport, tmp_path: Path) -> None:
    """Where the model to show answered nothing, tables say so and pictures are left out."""
    none = [None] * len(TABLE)
    silent = {
        "model": "ridge", "seconds": none, "low": none, "high": none,
        "in_domain": [False] * len(TABLE),
    }  # fmt: skip
    answers = replace(report.rows, models=(report.rows.models[0], silent))
    scores, _ = score_rows(TABLE, answers)
    page = write(tmp_path, replace(report, scores=scores, rows=answers))
    assert "<svg" not in page
    assert "worst of ridge" not in page
