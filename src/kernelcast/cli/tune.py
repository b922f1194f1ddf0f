"""``kernelcast tune``."""

import json
from collections.abc import Mapping
from pathlib import Path

from kernelcast.cli import options as option
from kernelcast.cli.terminal import Collected, ExitStatus, present, progress_bar, show
from kernelcast.launches.devices import choose_devices
from kernelcast.records.device import Progress
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.private_files import check_target, writing
from kernelcast.reports.presenter import Table, write_lines
from kernelcast.tuning.api import tune_on_device
from kernelcast.tuning.ranking import several_processes
from kernelcast.tuning.report import TuneReport, TuneSettings, report_to_json, report_to_t4
from kernelcast.tuning.space import read_space, read_t1


@option.command(short="Find the best launch configuration of a kernel by models.")
def tune(
    problem_file: Path | None = option.argument("[P.yaml]"),
    device_ids: tuple[str, ...] = option.device,
    settings: TuneSettings = option.settings(
        models=option.given(
            "--models",
            "Rank configurations by the analytic model alone, or also by a few work-groups of the "
            "best.",
        ),
        top=option.given(
            "--top K", "Configurations that are shown, and measured with --measure.",
        ),
        measure=option.given("--measure", "Measure the best K as a whole, in turn."),
        runs=option.given(
            "--runs N", "Measured runs of each; their median counts."
        ),
        sampled=option.given(
            "--sampled K", "Configurations that `--models hybrid` samples."
        ),
        seed=option.seed,
        timeout_s=option.given(
            "--timeout SECONDS", "Give up a configuration that runs longer.",
            type=option.POSITIVE,
        ),
    ),
    parameters: Mapping[str, int | float] = option.numbers(
        "--param NAME=VALUE",
        "Fix a value of the problem file's `parameters`, for example N=2**20; may be repeated.",
    ),
    save_file: Path | None = option.given(
        "--save FILE",
        "Keep measured runs in FILE (JSON lines) and continue from it.  [default: a file in the "
        "data folder]",
    ),
    t1_file: Path | None = option.given(
        "--t1 T1.json", "Read the problem from a T1 file of auto-tuners."
    ),
    t4_file: Path | None = option.given(
        "--t4 T4.json", "Write measurements to a T4 file; for one device."
    ),
) -> ExitStatus:  # fmt: skip
    """Search the configurations of a problem file for the fastest, by models.

    Lists of values among the file's `parameters` are searched, `restrictions` leave combinations
    out; without lists, local sizes are searched. With --measure the best K run as a whole, in
    turn; Ctrl-C loses nothing. The device must be calibrated.
    """
    option.refuse({
        "give one problem: a problem file, or --t1 T1.json":
            (problem_file is None) == (t1_file is None),
        "--param fixes values of a problem file; edit the T1 file instead": t1_file and parameters,
        "--t4 writes what was measured: give --measure as well": t4_file and not settings.measure,
    })  # fmt: skip
    for path in (save_file, t4_file):
        if path is not None:
            check_target(path)
    if t1_file is not None:
        space = read_t1(t1_file)
    else:
        assert problem_file is not None  # one of both is there
        space = read_space(problem_file, parameters=parameters)
    devices = choose_devices(device_ids)
    if t4_file is not None and len(devices) > 1:
        msg = f"--t4 takes the results of one device, here are {len(devices)}: choose by --device"
        raise InputError(msg)
    content = []
    collected = Collected[TuneReport](
        when_interrupted="measured runs are kept, the same command goes on where this ended"
    )
    with (
        collected.until_interrupted(), several_processes(space) as executor, progress_bar() as tell
    ):  # fmt: skip

        def report(progress: Progress) -> None:
            tell(progress.done, progress.total, f"{progress.device_id}: {progress.stage}")

        for device in devices:
            try:
                answer = tune_on_device(
                    space, device, settings=settings, save=save_file, executor=executor,
                    report=report,
                )  # fmt: skip
            except KernelcastError as error:
                collected.failures.append((space.name, error))
                content.append({
                    "problem": space.name, "device": device.name, "device_id": device.id,
                    "error_message": f"{space.name}: {error}",
                })  # fmt: skip
            else:
                collected.answers.append(answer)
                content.append(report_to_json(answer, top=settings.top))
    present(content)
    reports = collected.answers
    for one in reports:
        show(list_best(one, top=settings.top), *write_lines("tune.txt", report=one))
    if t4_file is not None and reports:
        with writing(t4_file):
            text = json.dumps(report_to_t4(reports[0]), indent=1) + "\n"
            t4_file.write_text(text, encoding="utf-8")
    return collected.conclude()


def list_best(report: TuneReport, *, top: int) -> Table:
    shown = [
        configuration for configuration in report.configurations if not configuration.obstacle
    ][:top]
    parameters = {
        name: ("number", lambda one, name=name: f"{one.parameters[name]:g}")
        for name in report.names
    }
    table = Table.of(
        shown,
        {
            **parameters,
            "local size": ("number", lambda one: " x ".join(map(str, one.local_size))),
            "predicted": ("s", "predicted_s"), "sampled": ("s", "sampled_s"),
            "measured": ("s", "measured_s"),
            "limited by": ("text", lambda one: one.limiter.partition(":")[0]),
        },
        title=f"{report.problem} on {report.device_id}",
    )  # fmt: skip
    return table.without_empty("sampled", "measured")
