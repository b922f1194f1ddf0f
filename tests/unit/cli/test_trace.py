from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kernelcast.records.errors import CompileError, KernelcastError, KernelRunError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.work_group_trace import Staircase, StepTimes, Timeline, WorkGroupTrace
from kernelcast.reports import drawing
from kernelcast.reports.charts import Figure
from support.builders import make_description
from support.commands import run_command

run = partial(
    run_command, "trace", Path(__file__).parents[3] / "examples/triad/triad.yaml"
)  # fmt: skip


def make_timeline(groups: int = 8) -> Timeline:
    starts = tuple(float(number // 2) for number in range(groups))
    return Timeline(
        starts_s=starts,
        finishes_s=tuple(start + 1.0 for start in starts),
        lanes=tuple(number % 2 for number in range(groups)),
        lanes_are_compute_units=False,
        waves=tuple(number // 2 for number in range(groups)),
        clock="a clock",
        resolution_s=2e-8,
        launch_s=groups / 2,
        plain_s=groups / 4,
    )


STEPS = StepTimes(work_groups=(1, 2, 3, 4), times_s=(1.0, 1.0, 2.0, 2.0), has_steps=True)
NO_STEPS = StepTimes(work_groups=(1, 2), times_s=(1.0, 1.0), has_steps=False)


def make_trace(problem: Problem, outcome: Timeline | StepTimes) -> WorkGroupTrace:
    is_told = isinstance(outcome, Timeline) or outcome.has_steps
    return WorkGroupTrace(
        device="A",
        device_id="a-1",
        problem=problem.name,
        kernel="k",
        ndrange=NDRange(global_size=(64,), local_size=(8,)),
        compute_units=2,
        reason="it is a test",
        concurrency=2 if is_told else None,
        p_sat=1 if is_told else None,
        probe_concurrency=2,
        staircase=Staircase.NOT_APPLICABLE,
        outcome=outcome,
        run_length=1.0 if isinstance(outcome, Timeline) else None,
    )


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    device = replace(make_description(), id="a-1", name="A")

    def answer_with(*outcomes: Timeline | StepTimes | KernelcastError) -> None:
        def trace_on_devices(problem: Problem, *_: object, **__: object) -> Iterator[object]:
            for one in outcomes:
                is_error = isinstance(one, KernelcastError)
                yield device, one if is_error else make_trace(problem, one)

        monkeypatch.setattr("kernelcast.cli.trace.choose_devices", lambda _: [device])
        monkeypatch.setattr("kernelcast.cli.trace.trace_on_devices", trace_on_devices)

    return answer_with


@pytest.mark.parametrize(
    ("outcome", "cells", "told"),
    [
        (
            make_timeline(), "triad a-1 clock 8 of 8 2 1 4",
            ("traced by a clock, seen to tick every 20.0 ns; it is a test", "2.0 times as long"),
        ),
        (STEPS, "triad a-1 steps", ("not traced by a clock: it is a test", "climbs in steps of 2")),
        (NO_STEPS, "triad a-1 steps", ("shows no steps",)),
    ],
)  # fmt: skip
def test_the_table_shows_what_was_found(
    answer: Callable[..., None], outcome: Timeline | StepTimes, cells: str,
    told: tuple[str, ...],
) -> None:  # fmt: skip
    """Shows method, concurrency, waves, and below why that method; warns of a slowed launch."""
    answer(outcome)
    result = run()
    assert result.exit_code == 0
    row = next(line for line in result.stdout.splitlines() if line.strip().startswith("triad"))
    assert " ".join(row.split()).startswith(cells)
    assert all(one in result.stdout for one in told)


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        ((NO_STEPS, CompileError("refused")), 1),
        ((CompileError("refused"), CompileError("refused")), 2),
        ((KernelRunError("died"),), 1),
    ],
)
def test_the_status_tells_bad_input_from_a_failed_device(
    answer: Callable[..., None],
    outcomes: tuple[StepTimes | KernelcastError, ...],
    status: int,
) -> None:
    """Ends with 2 only where every device refuses the problem itself."""
    answer(*outcomes)
    assert run().exit_code == status


def test_a_picture_of_many_work_groups_shows_some(
    tmp_path: Path, answer: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first to the last, and says of how many."""
    drawn: list[Figure] = []
    monkeypatch.setattr(drawing, "save_figure", lambda _, figure: drawn.append(figure))
    answer(make_timeline(9_000))
    run("--plot", str(tmp_path / "trace.svg"))
    bars = drawn[0].charts[0]
    assert "4,000 of 9,000 work-groups drawn" in bars.title
    places = sorted(point.y for series in bars.series for point in series.points)
    assert (len(places), places[0], places[-1]) == (4000, 0, 8999)
