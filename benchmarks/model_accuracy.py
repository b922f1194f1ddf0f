"""How good learned models are on kernels, and on devices, that they have not seen.

Run ``python benchmarks/model_accuracy.py``; writes ``results/model_accuracy/<device>.json``,
``transfer.json`` and, from these files, ``summary.md`` and the README's table. Every kernel is
held out with all its rows, and predicted by models that were fitted, tuned, gated and calibrated
on the others; for ``transfer.json`` (``--split device`` alone) every device.
"""

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from machine import describe_machine

from kernelcast.models.catalogue import ABLATION, RIVALS
from kernelcast.models.validation import DeviceScore, ValidationReport
from kernelcast.models.validation.comparison import compare_validated
from kernelcast.records.training_table import TrainingTable
from kernelcast.training.settings import RowFilter, Split, ValidationSettings
from kernelcast.training.table import load_training_table
from kernelcast.training.validating import validate_models

FOLDER = Path(__file__).resolve().parent / "results" / "model_accuracy"
README = FOLDER.parent.parent.parent / "README.md"
SHIPPED = FOLDER.parent.parent.parent / "src" / "kernelcast" / "training_data" / "measured"
TRANSFERRED = ("linear", "analytic", "hybrid_pooled")
BEGIN, END = "<!-- models: begin -->", "<!-- models: end -->"
WORST_SHOWN = 10
SHOWN = ("two_point", "linear", "pooled_rate", "analytic", "mwp_cwp", "ridge", "random_forest",
         "gradient_boosting", "svr", "hybrid_without_static", "hybrid_without_compiler",
         "hybrid_without_sampled", "hybrid_without_counters", "hybrid_without_analytic",
         "hybrid")  # fmt: skip


def main() -> None:
    """Validate, and write results and tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", action="append", default=[], help="as `kernelcast validate`")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--without", action="append", default=[], help="a model; may be repeated")
    parser.add_argument("--split", choices=("kernel", "device"), help="default: both")
    parser.add_argument("--only-tables", action="store_true")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not options.only_tables:
        table = load_training_table(options.data or [SHIPPED])
        names = dict.fromkeys((*RIVALS, *ABLATION))
        wanted = tuple(one for one in names if one not in options.without)
        if options.split != "device":
            measure_kernels(table, wanted, options.jobs)
        if options.split != "kernel" and len(set(table.devices.tolist())) >= 3:
            measure_transfer(table, options.jobs)
    write_tables()


def measure_kernels(table: TrainingTable, names: tuple[str, ...], jobs: int) -> None:
    """Leave one kernel out, on each device."""
    report = validate_models(table, ValidationSettings(models=names, jobs=jobs), _tell)
    gain = compare_validated(report, "linear", "hybrid")
    for device in sorted({one.device for one in report.scores}):
        scores = [one for one in report.scores if one.device == device]
        difference = next(one for one in gain.devices if one.device == device)
        _write(f"{device}.json", report, {
            "device": device,
            "scores": [_shorten(one) for one in scores],
            "linear_less_hybrid": asdict(difference),
        })  # fmt: skip
    _write("ranking.json", report, {"rankings": [asdict(one) for one in report.rankings]})


def measure_transfer(table: TrainingTable, jobs: int) -> None:
    """Leave one device out: the pooled model knows its calibration only."""
    settings = ValidationSettings(split=Split.DEVICE, models=TRANSFERRED, jobs=jobs)
    report = validate_models(table, settings, _tell)
    _write("transfer.json", report, {
        "scores": [_shorten(one) for one in report.scores],
        "rankings": [asdict(one) for one in report.rankings],
    })  # fmt: skip


def write_tables() -> None:
    """Render the result files."""
    files = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(FOLDER.glob("*.json"))
    }
    kernels = [one for one in files.values() if "device" in one]
    lines = ["# Accuracy on kernels that were held out", ""]
    for one in kernels:
        lines += [f"## {one['device']}", "", *_table(one["scores"], SHOWN), "", *_worst(one), ""]
    if transfer := files.get("transfer"):
        lines += ["# Accuracy on devices that were held out", ""]
        lines += [*_table(transfer["scores"], TRANSFERRED), ""]
    (FOLDER / "summary.md").write_text("\n".join(lines), encoding="utf-8")
    overview = _table([score for one in kernels for score in one["scores"]], ("linear", "hybrid"))
    before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    if rest:
        block = "\n".join([BEGIN, "", *overview, "", END])
        README.write_text(f"{before}{block}{rest.partition(END)[2]}", encoding="utf-8")
    print("\n".join(lines))


def _table(scores: Sequence[dict[str, Any]], names: Sequence[str]) -> list[str]:
    lines = [
        "| device | model | rows | mean | median | 90th percentile | worst | noise: mean "
        "| 90 % intervals hold | half width: median |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    by_name = {(one["device"], one["model"]): one for one in scores}
    for device in dict.fromkeys(one["device"] for one in scores):
        for name in names:
            one = by_name.get((device, name))
            if one is None or one["errors"] is None:
                continue
            errors = one["errors"]
            lines.append(
                f"| {device} | {name} | {errors['rows']} | {errors['mean']:.1%} "
                f"| {errors['median']:.1%} | {errors['p90']:.1%} | {errors['worst']:.0%} "
                f"| {one['noise']:.1%} | {one['coverage']:.1%} | {one['half_width']:.1%} |"
            )
    return lines


def _worst(content: dict[str, Any]) -> list[str]:
    hybrid = next(one for one in content["scores"] if one["model"] == "hybrid")
    lines = ["Worst kernels of the hybrid:", ""]
    for one in hybrid["worst_groups"]:
        linear = "" if one["linear_error"] is None else f", linear {one['linear_error']:.1%}"
        lines.append(f"- {one['group']}: {one['error']:.1%}{linear} ({one['rows']} rows)")
    return lines


def _shorten(score: DeviceScore) -> dict[str, Any]:
    """Keep the worst groups only."""
    content = asdict(score)
    content["worst_groups"] = content.pop("groups")[:WORST_SHOWN]
    return content


def _write(name: str, report: ValidationReport, content: dict[str, Any]) -> None:
    rows = RowFilter()
    known = {
        "split": report.split,
        "rows": f"measured time {rows.describe()}",
        "data_digest": report.data_digest,
        "schema": report.schema_id,
        "machine": describe_machine(),
        "refused": dict(report.refused),
    }
    text = json.dumps({**content, **known}, indent=1)
    (FOLDER / name).write_text(text + "\n", encoding="utf-8")


def _tell(done: int, total: int) -> None:
    if done % 50 == 0 or done == total:
        print(f"{done} of {total} fits", flush=True)


if __name__ == "__main__":
    main()
