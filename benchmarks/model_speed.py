"""How long models take to answer and to learn.

``python benchmarks/model_speed.py [--rows N ...]`` measures on synthetic launches with as many
features as ours have: one prediction of a ready vector, batches of 1000, both with intervals, the
same through scikit-learn's own SVR and forest, and the time of a fit over the number of rows.
Wall-clock time, the least of several repeats, on one thread of NumPy. Writes
``benchmarks/results/model_speed/speed.json`` and a plot.
"""

import argparse
import json
import math
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.ensemble import RandomForestRegressor
from sklearn.svm import SVR
from threadpoolctl import threadpool_limits

from kernelcast.features.vector.catalogue import make_schema
from kernelcast.models.catalogue import make_model
from kernelcast.models.columns import FIGURES
from kernelcast.models.correction import EVIDENCE_ROWS, FittedCorrection
from kernelcast.models.row_predictor import RowPredictor
from kernelcast.models.space import EXACT_ROWS, LANDMARKS
from kernelcast.models.versions import list_versions
from kernelcast.records.training_table import TEXT_COLUMNS, TrainingTable, make_table
from kernelcast.testing.synthetic_rows import make_rows

RESULTS = Path(__file__).parent / "results" / "model_speed"
_TRAINING_ROWS = 700
_ROWS = (1_000, 3_000, 10_000, 30_000, 100_000)
_KERNELS = 70
_TREES = 505


def widen(table: TrainingTable, seed: int) -> TrainingTable:
    """Give launches as many features as ours have: mixtures of their own, with noise."""
    schema = make_schema()
    mixing = np.random.default_rng(1).normal(size=(table.features.shape[1], len(schema.names)))
    noise = np.random.default_rng(seed).normal(size=(len(table), len(schema.names)))
    logs = np.log1p(np.abs(np.nan_to_num(table.features)))
    features = np.exp(0.1 * logs @ mixing + 0.05 * noise)
    for place, name in enumerate(schema.names):
        if name in table.schema.names:
            features[:, place] = table.column(name)
    names = (*TEXT_COLUMNS, "seconds", *FIGURES)
    return make_table(schema, features, {name: getattr(table, name) for name in names})


def take_least(act: Callable[[], object], repeats: int) -> float:
    """Give the least wall-clock time of several repeats, in seconds."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        act()
        times.append(time.perf_counter() - began)
    return min(times)


def measure_predictions() -> dict[str, float]:
    """Measure single predictions and batches, in microseconds per row."""
    training = widen(make_rows(kernels=_KERNELS, sizes=_TRAINING_ROWS // _KERNELS), 0)
    batch = widen(make_rows(kernels=100, sizes=10, seed=5), 1)
    fitted = make_model("hybrid").fit(training)
    if not isinstance(fitted, FittedCorrection):
        raise TypeError(fitted)
    compiled = RowPredictor(fitted, training.schema)
    figures = np.column_stack([getattr(batch, name) for name in FIGURES])
    vector, figure = batch.features[3].copy(), figures[3].copy()
    single = batch.take(np.array([3]))
    rows, targets = fitted.place(training), np.log(training.seconds / training.linear_s)
    svr = SVR(gamma=0.1, C=1.0, epsilon=0.02).fit(rows.projected, targets)
    forest = RandomForestRegressor(_TREES, n_jobs=1, random_state=0)
    forest.fit(rows.projected, targets)
    other = fitted.place(batch).projected
    compiled.predict(vector, figure)
    repeats = range(200)
    return {
        "row_predictor_single": 1e6 / len(repeats)
        * take_least(lambda: [compiled.predict(vector, figure) for _ in repeats], 20),
        "row_forecast_single": 1e6 / len(repeats)
        * take_least(lambda: [compiled.forecast(vector, figure) for _ in repeats], 20),
        "forecast_many_1000": 1e6 / len(batch)
        * take_least(lambda: compiled.forecast_many(batch.features, figures), 100),
        "table_forecast_single": 1e6 * take_least(lambda: fitted.forecast(single), 200),
        "table_forecast_1000": 1e6 / len(batch)
        * take_least(lambda: fitted.forecast(batch), 100),
        "table_single": 1e6 * take_least(lambda: fitted.predict(single), 200),
        "table_batch_1000": 1e6 / len(batch) * take_least(lambda: fitted.predict(batch), 100),
        "scikit_learn_svr_single": 1e6 * take_least(lambda: svr.predict(other[:1]), 200),
        "scikit_learn_svr_batch_1000": 1e6 / len(batch)
        * take_least(lambda: svr.predict(other), 10),
        "scikit_learn_forest_single": 1e6 * take_least(lambda: forest.predict(other[:1]), 5),
    }  # fmt: skip


def measure_fits(sizes: tuple[int, ...]) -> list[dict[str, float]]:
    """Measure fits over the number of rows, in CPU seconds of one thread."""
    found = []
    for rows in sizes:
        table = widen(make_rows(kernels=_KERNELS, sizes=math.ceil(rows / _KERNELS)), rows)
        table = table.take(np.arange(rows))
        began = time.process_time()
        fitted = make_model("hybrid").fit(table)
        took_s = time.process_time() - began
        unseen = widen(make_rows(kernels=40, sizes=5, seed=9), 2)
        errors = np.abs(fitted.predict(unseen) / unseen.seconds - 1)
        found.append({"rows": rows, "fit_cpu_s": took_s, "unseen_mean_error": errors.mean()})
        print(f"{rows:7d} rows: {took_s:6.1f} s, error {errors.mean():.4f}", flush=True)
    return found


def plot(fits: list[dict[str, float]]) -> None:
    """Plot fits beside n log n."""
    rows = np.array([one["rows"] for one in fits])
    times = np.array([one["fit_cpu_s"] for one in fits])
    figure = Figure(figsize=(6, 4))
    axes = figure.subplots()
    axes.loglog(rows, times, "o-", label="hybrid")
    growth = rows * np.log(rows)
    axes.loglog(rows, times[0] * growth / growth[0], "--", label="n log n")
    axes.axvline(EXACT_ROWS, color="grey", lw=0.8, label="landmarks from here on")
    axes.axvline(EVIDENCE_ROWS, color="grey", lw=0.8, ls=":", label="settings on a sample")
    axes.set_xlabel("training rows")
    axes.set_ylabel("CPU time of a fit in s")
    axes.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "fit.png", dpi=120)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=list(_ROWS))
    options = parser.parse_args()
    with threadpool_limits(1):
        predictions = measure_predictions()
        for name, one in predictions.items():
            print(f"{name:30} {one:10.2f} us per row", flush=True)
        fits = measure_fits(tuple(options.rows))
    RESULTS.mkdir(parents=True, exist_ok=True)
    content = {
        "machine": platform.processor() or platform.machine(),
        "training_rows": _TRAINING_ROWS,
        "features": len(make_schema().names),
        "exact_up_to_rows": EXACT_ROWS,
        "landmarks": LANDMARKS,
        "evidence_rows": EVIDENCE_ROWS,
        "microseconds_per_row": predictions,
        "fits": fits,
        "versions": list_versions(),
    }
    (RESULTS / "speed.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    plot(fits)


if __name__ == "__main__":
    main()
