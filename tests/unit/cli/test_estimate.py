import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kernelcast.cli.estimate import chart_answers, list_answers, list_explanations, list_warnings
from kernelcast.predictor import estimates
from kernelcast.predictor.predictor import Predictor, PredictorOptions
from kernelcast.records.contention import Contention
from kernelcast.records.errors import BrokenDeviceError, InputError
from kernelcast.records.estimates import DeviceAnswer, Interval, Measurement, Tier
from kernelcast.records.explanation import Explanation, HistoryFacts, Influence, ModelFacts
from kernelcast.records.ndrange import NDRange
from kernelcast.reports.drawing import save_figure
from kernelcast.reports.presenter import make_renderable
from support.builders import make_estimate
from support.commands import run_command
from support.fake_executor import FakeExecutor, make_analytic, make_device

PROBLEM = Path(__file__).parents[3] / "examples" / "nbody" / "nbody.yaml"
DEVICE = make_device()


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> FakeExecutor:
    """Let a formula answer instead of devices."""
    found = FakeExecutor(work_group_s=1e-3, analytic=make_analytic(0.4))
    monkeypatch.setattr("kernelcast.predictor.estimates.find_devices", lambda _: [DEVICE])

    def make(registry: str, store: str) -> Predictor:
        options = PredictorOptions(executor=found)
        return Predictor(registry=registry, store=store, options=options)

    monkeypatch.setattr(estimates, "_find_predictor", make)
    return found


def run(*options: str) -> tuple[int, str]:
    result = run_command("estimate", PROBLEM, *options)
    return result.exit_code, result.output


def test_samples_have_to_gain_as_much_as_is_asked(executor: FakeExecutor) -> None:
    """`--least-gain` reaches what decides about samples; without an answer there is no table."""
    run("--least-gain", "2.5")
    run()
    assert [one.settings.least_gain for one in executor.tasks] == [2.5, 1.0]
    assert run("--least-gain", "-1")[0] == 2
    executor.error = BrokenDeviceError(f"{DEVICE.id}: it is broken")
    assert run() == (1, f"kernelcast: nbody: {DEVICE.id}: it is broken\n")


def _answer(device_id: str, **changes: Any) -> DeviceAnswer:  # noqa: ANN401 - fields of an estimate
    """Make an answer on a busy machine that was also measured."""
    contention = Contention(
        worked_s=0.1, waited_s=0.15, others=3, measured_at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    estimate = make_estimate(
        device="d", device_id=device_id, sampled_work_groups=24_744, tier=Tier.HYBRID,
        ndrange=NDRange(global_size=(89_478_464,), local_size=(64,)),
        interval=Interval(seconds=0.869, low=0.747, high=1.01, coverage=0.9),
        sampling_seconds=0.0162, overhead_seconds=0.6, build_seconds=0.066,
        measurement=Measurement(durations_s=(0.9, 0.91, 0.92)),
        explanation=Explanation(tier=Tier.HYBRID, contention=contention),
    )  # fmt: skip
    return DeviceAnswer(
        device_id=device_id, device="d", problem="p", kernel="k",
        estimate=replace(estimate, **changes),
    )  # fmt: skip


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("is_measured", [False, True])
def test_no_device_id_is_broken_on_80_columns(count: int, is_measured: bool) -> None:
    """The table of a narrow terminal holds every id whole, for one device and for three."""
    ids = ("intel-amd-epyc-55ea", "pocl-skylake-avx512-amd-91ef", "rusticl-llvmpipe-amd-epyc-2b30")
    answers = list(map(_answer, ids[:count]))
    text = io.StringIO()
    table = list_answers(answers, 0.9, is_measured=is_measured)
    Console(width=80, file=text).print(make_renderable(table, width=80))
    assert all(one in text.getvalue() for one in ids[:count])
    for part in ("869 ms", "0.747 - 1.01 s", "24,744 of 1,398,101", "534 ms, 61.4 %"):
        assert text.getvalue().count(part) == count


def test_a_warning_of_several_answers_is_written_once() -> None:
    """Names all problems and devices before the text, and nothing of those that failed."""
    failed = replace(_answer("c"), estimate=None, error=InputError("no"))
    answers = [_answer("a", warnings=("small", "old")), _answer("b", warnings=("small",)), failed]
    assert list_warnings(answers) == ["p on a, p on b: small", "p on a: old"]


def test_the_picture_shows_what_a_run_is_held_against(tmp_path: Path) -> None:
    """Draws the time on the machine as it is beside runs on it, as the table's error does."""
    save_figure(tmp_path / "plot.svg", chart_answers([_answer("d")]))
    assert "predicted, as the machine is now (90% interval)" in (tmp_path / "plot.svg").read_text()


@pytest.mark.usefixtures("executor")
def test_a_damaged_store_costs_no_estimate(tmp_path: Path) -> None:
    """Where the store cannot be read the launch is sampled, and a warning says so."""
    (tmp_path / "observations.sqlite").write_bytes(b"no store" * 100)
    status, output = run("--json")
    (answer,) = json.loads(output)
    assert (status, answer["tier"]) == (0, "linear")
    assert "does not answer" in answer["explanation"]["missing"]["history"]
    assert any("no history: the store of obs" in one for one in answer["warnings"])
    assert "no history: the store of observations" in " ".join(run()[1].split())


def test_every_part_of_an_explanation_is_shown() -> None:
    """Model, data, features, limiters, history and notes each have a line."""
    known = Explanation(
        tier=Tier.HYBRID,
        model=ModelFacts(
            name="hybrid/d", version="0003-ab", place="/models", schema_id="v1-x",
            data_digest="c0ffee" * 10, rows=900, error=0.031,
        ),
        history=HistoryFacts(
            observations=2, first=datetime(2026, 1, 1, tzinfo=UTC),
            last=datetime(2026, 1, 2, tzinfo=UTC),
        ),
        influences=(Influence(feature="static.buffer_bytes", factor=1.07),),
        limiters={"DRAM": 0.2, "fp32": 0.1},
        notes=("counters are derived from the source",),
    )  # fmt: skip
    text = "\n".join(list_explanations([_answer("d", explanation=known)]))
    for part in (
        "answered by: hybrid", "hybrid/d 0003-ab of /models", "900 observations", "c0ffeec0ffee",
        "3.1 %", "static.buffer_bytes x1.070", "DRAM 200 ms, fp32 100 ms", "2 observations",
        "2026-01-01", "note: counters are derived",
    ):  # fmt: skip
        assert part in text
