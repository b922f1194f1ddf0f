"""``kernelcast estimate``."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kernelcast.cli import options as option
from kernelcast.cli.terminal import Collected, ExitStatus, present, progress
from kernelcast.launches.devices import refuse_unknown_ids, start_ahead
from kernelcast.launches.settings import EstimateSettings, prefix
from kernelcast.records.device import SaturationPoint
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import DeviceAnswer, Estimate
from kernelcast.records.private_files import check_target
from kernelcast.reports.charts import Axis, Chart, Figure, make_series
from kernelcast.reports.numbers import format_duration, format_range, format_seconds, format_share
from kernelcast.reports.presenter import Field, Part, Table, Value, write_lines

if TYPE_CHECKING:
    from kernelcast.launches.recordings import RecordedAnswer, Recording
    from kernelcast.records.problem import Problem


@option.command(
    short="Predict how long kernels take on each device.",
    plot="FILE.png: Draw predicted times with their intervals, beside measured ones, to FILE (png, "
    "pdf, svg); needs kernelcast[plot].",
)  # fmt: skip
def estimate(  # noqa: PLR0913 - each is an option
    problem_files: tuple[Path, ...] = option.argument("P.yaml...", required=False),
    device_ids: tuple[str, ...] = option.device,
    settings: EstimateSettings = option.settings(
        measure=option.given(
            "--measure", "Also time whole runs of the kernel and show the error."
        ),
        measured_runs=option.given(
            "--runs N", "Whole runs timed by --measure, after one that is not counted.",
        ),
        plan=option.settings(
            budget=option.given(
                "--budget SHARE",
                "Device time for samples as a share of the predicted time, above 0, at most 1; "
                "short launches get a millisecond or two, half of the launch at most.",
            ),
            seed=option.seed,
        ),
        coverage=option.given(
            "--coverage SHARE",
            "Share of true times that the interval should hold: between 0 and 1.",
        ),
        within_s=option.given(
            "--within SECONDS",
            "Wait so long for each answer, builds included, at most 60 s. Without samples by then "
            "the best other answer is given, with a warning.",
        ),
        least_gain=option.least_gain,
        uses_history=option.given(
            "--no-history",
            "Use no earlier observations or samples.",
        ),
    ),
    no_sampling: bool = option.given(
        "--no-sampling",
        "Run nothing: answer from observations, or by the analytic model of a calibrated device.",
    ),
    parameters: Mapping[str, int | float] = option.parameters,
    timeout_s: float = option.timeout,
    explain: bool = option.given(
        "--explain",
        "Say how each answer was obtained, and why not in a better way; --json always does.",
    ),
    record_file: Path | None = option.given(
        "--record FILE", "Write the raw samples to FILE (JSON), for --replay."
    ),
    replay_file: Path | None = option.given(
        "--replay FILE",
        "Answer from the samples in FILE, with the budget and seed they were recorded with; "
        "without P.yaml, for all problems in FILE.",
    ),
) -> ExitStatus:  # fmt: skip
    """Predict how long the kernels of problem files take on each device.

    A few work-groups are run and timed; the whole launch's time follows from them, with an
    interval. Observations of the launch, or samples of the last hour, answer where more samples
    would gain less than they cost, unless whole runs are measured or samples recorded. Devices
    answer one after the other, each in a process of its own. Ctrl-C prints what is done.
    """
    option.refuse({
        "give at least one problem file, for example `kernelcast estimate P.yaml`":
            not problem_files and replay_file is None,
        "--no-sampling runs nothing: leave out --measure, --record and --replay":
            no_sampling and (settings.measure or record_file or replay_file),
    })  # fmt: skip
    settings = replace(
        settings, seed=settings.plan.seed, samples=not no_sampling,
        uses_history=settings.uses_history and not record_file,
    )  # fmt: skip
    if record_file is not None:
        check_target(record_file)
    began = datetime.now(UTC)
    if replay_file is None:
        # What answers takes as long to import as the process to start.
        start_ahead(None if no_sampling else (device_ids or ("",))[0])
    with progress() as report:
        collected, recordings = collect_estimates(
            problem_files, parameters, settings, device_ids=device_ids, timeout_s=timeout_s,
            replay_file=replay_file, report=report,
        )  # fmt: skip
    answers = collected.answers
    parts: list[Part] = []
    if is_answered := any(answer.estimate for answer in answers):
        parts.append(list_answers(answers, settings.coverage, is_measured=settings.measure))
        for answer in answers:
            pieces = () if answer.estimate is None else answer.estimate.list_pieces()
            times = [piece.measured_at for piece in pieces if piece.measured_at]
            if last := max((one for one in times if one < began), default=None):
                parts.append(
                    f"note: {answer.problem} on {answer.device_id}: rests on samples taken "
                    f"{format_duration((began - last).total_seconds())} ago, at "
                    f"{last:%Y-%m-%d %H:%M:%S} UTC; --no-history samples anew"
                )
        parts += [f"warning: {warning}" for warning in list_warnings(answers)]
        parts += list_explanations(answers) if explain else ()
    present(
        [answer.to_dict() for answer in answers], *parts,
        figure=chart_answers(answers) if is_answered else None,
    )  # fmt: skip
    status = collected.conclude()
    if record_file is not None and recordings:
        from kernelcast.launches.recordings import write_recordings

        write_recordings(record_file, recordings)
    return status


def list_answers(answers: Sequence[DeviceAnswer], coverage: float, *, is_measured: bool) -> Table:
    """List answers; a device that failed says so, its error goes elsewhere."""
    interval = f"{coverage * 100:g} % interval"
    measured = ("measured", "noise", "error", "one run off")

    def of(write: Callable[[Estimate], Value]) -> Field:
        """Write something of an estimate; nothing where there is none."""
        return lambda one: "" if one.estimate is None else write(one.estimate)

    def describe_saturation(point: SaturationPoint | None) -> str:
        """Write the value in use, and the other where rules and measurement disagree."""
        if point is None:
            return ""
        text = f"{point.p_sat.value} {point.p_sat.source}"
        if point.disagreement is None:
            return text
        others = {"computed": point.computed, "measured": point.measured}
        used = point.p_sat.source
        return ", ".join([text, *(f"{n} {how}" for how, n in others.items() if how != used)])

    def describe(part_s: float, seconds: float) -> str:
        ratio = part_s / seconds
        times = f"{ratio:.2g} x" if ratio < 10 else f"{ratio:,.0f} x"
        share = format_share(ratio) if ratio < 1 else times
        return f"{format_seconds(part_s)}, {share}" if part_s else "-"

    table = Table.of(answers, {
        "problem": "text", "device": ("text", "device_id"),
        "predicted": ("s", lambda one: one.estimate.seconds if one.estimate else "failed"),
        interval: ("number", of(lambda one: format_range(one.low, one.high))),
        "now": ("s", of(lambda one: one.now.seconds if one.now else "")),
        "now, interval": ("number", of(lambda one: (
            format_range(one.now.low, one.now.high) if one.now else ""
        ))),
        "tier": ("text", of(lambda one: str(one.tier))),
        "P_sat": ("text", of(lambda one: describe_saturation(one.saturation))),
        "work-groups\nsampled": ("number", of(lambda one: (
            f"{one.sampled_work_groups:,} of {one.ndrange.work_group_count:,}"
        ))),
        "sampling": ("number", of(lambda one: describe(one.cost.sampling_s, one.seconds))),
        "build": ("number", of(lambda one: describe(one.cost.build_s, one.seconds))),
        "rest": ("number", of(lambda one: describe(one.cost.rest_s, one.seconds))),
        "measured": ("number", of(lambda one: (
            "" if (runs := one.measurement) is None else format_seconds(runs.seconds)
            + (f", {runs.slowdown:.2g} x" if runs.slowdown > 1 else "")
        ))),
        "noise": ("share", "estimate.measurement.noise"),
        "error": ("signed share", of(lambda one: (
            one.measurement.error_of(one.seconds) if one.measurement else None
        ))),
        "one run off": ("share", "estimate.measurement.one_run_error"),
    }, stacks=(
        ("problem", "device", "tier", "P_sat"), ("predicted", interval, "now", "now, interval"),
        ("work-groups\nsampled", "sampling", "build", "rest"), measured,
    ))  # fmt: skip
    is_busy = any(one.estimate is not None and one.estimate.now is not None for one in answers)
    return table.without(
        *(() if is_busy else ("now", "now, interval")), *(() if is_measured else measured)
    )


def list_warnings(answers: Sequence[DeviceAnswer]) -> list[str]:
    """Write each warning once, with the problems and devices it is about."""
    places: dict[str, list[str]] = {}
    for answer in answers:
        for warning in answer.estimate.warnings if answer.estimate else ():
            places.setdefault(warning, []).append(f"{answer.problem} on {answer.device_id}")
    return [f"{', '.join(where)}: {warning}" for warning, where in places.items()]


def chart_answers(answers: Sequence[DeviceAnswer]) -> Figure:
    rows = [
        (f"{answer.problem}\n{answer.device_id}", answer.estimate)
        for answer in answers
        if answer.estimate
    ]
    expected = [prediction.expected for _, prediction in rows]
    busy = ", as the machine is now" if any(prediction.now for _, prediction in rows) else ""
    seconds = [one.seconds for one in expected]
    predicted = make_series(
        f"predicted{busy} ({expected[0].coverage:.0%} interval)", range(len(rows)), seconds,
        "bars", low=[one.low for one in expected], high=[one.high for one in expected],
    )  # fmt: skip
    runs_s = {
        place: one.measurement.seconds
        for place, (_, one) in enumerate(rows) if one.measurement is not None
    }  # fmt: skip
    measured = make_series("measured (median)", runs_s.keys(), runs_s.values(), "bars")
    y = Axis(title="time of the whole launch", unit="s",
             is_log=max(seconds) > 20.0 * min(seconds))  # fmt: skip
    series = (predicted, measured) if measured.points else (predicted,)
    x = Axis(title="", names=tuple(name for name, _ in rows))
    return Figure(charts=(Chart(x=x, y=y, series=series, title=" " * (len(series) < 2)),))


def list_explanations(answers: Sequence[DeviceAnswer]) -> Iterator[str]:
    for answer in answers:
        if answer.estimate is not None:
            yield ""
            yield f"{answer.problem} on {answer.device_id}"
            facts = answer.estimate.explain()
            lines = write_lines("explanation.txt", one=answer.estimate, facts=facts)
            yield from (f"  {line}" for line in lines)


def collect_estimates(
    paths: Sequence[Path], parameters: Mapping[str, int | float], settings: EstimateSettings, *,
    device_ids: Sequence[str], timeout_s: float, replay_file: Path | None,
    report: Callable[[str], None],
) -> "tuple[Collected[DeviceAnswer], list[Recording]]":  # fmt: skip
    """Answer every problem, with raw samples; an error ends one problem, Ctrl-C ends all."""
    from kernelcast.launches.recordings import Recording, read_recordings
    from kernelcast.launches.source_check import refuse_misfits

    collected, recorded = Collected[DeviceAnswer](), list[Recording]()
    problems = collected.read_problems(paths, parameters)
    if paths and not problems:
        return collected, recorded

    def ask() -> "Iterator[tuple[str, Iterator[RecordedAnswer]]]":
        """Name each problem, with its answers to come."""
        if replay_file is not None:
            from kernelcast.predictor.estimates import replay

            recordings = read_recordings(replay_file)
            wanted: Sequence[Problem | None] = problems or [None]
            for one in wanted:
                name = replay_file.name if one is None else one.name
                yield name, replay(recordings, one, device_ids=device_ids, settings=settings)
            return
        report("reading the source")
        good = []
        for problem in problems:
            try:
                refuse_misfits(problem)
                good.append(problem)
            except KernelcastError as error:
                collected.refusals.append((problem.name, error))
        if not good:
            return
        refuse_unknown_ids(device_ids)
        # Who gave a wrong problem, or a wrong id, has not waited for this import.
        from kernelcast.predictor.estimates import estimate_on_devices, find_devices

        report("looking for devices")
        devices = find_devices(device_ids)
        for number, problem in enumerate(good, start=1):
            yield (
                problem.name,
                estimate_on_devices(
                    problem, devices, settings=settings, timeout_s=timeout_s,
                    report=prefix(report, f"[{number}/{len(good)}] {problem.name} on "),
                ),
            )  # fmt: skip

    with collected.until_interrupted():
        for name, answers in ask():
            failures = len(collected.failures)
            try:
                for answer, recording in answers:
                    collected.answers.append(answer)
                    if answer.error is not None:
                        collected.failures.append((answer.problem, answer.error))
                    if recording is not None:
                        recorded.append(recording)
            except KernelcastError as error:
                # What no device takes is said once; the answers hold what each has said.
                del collected.failures[failures:]
                collected.refusals.append((name, error))
    return collected, recorded
