"""``kernelcast starpu``."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import present, progress_bar
from kernelcast.cli.training import STORE
from kernelcast.launches.data_store import open_data_store
from kernelcast.launches.settings import DEFAULT_TIMEOUT_S, EstimateSettings
from kernelcast.records.errors import InputError
from kernelcast.records.plain import pick
from kernelcast.reports.presenter import Table
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.scheduling.starpu import (
    TaskSize,
    TimeSource,
    estimate_now,
    parse_worker,
    read_codelets,
    read_estimates,
    read_times,
    recall_observed,
    save_model,
)


@click.group
def starpu() -> None:
    """Give StarPU's schedulers predicted times before anything has run.

    StarPU is a task scheduler for machines with several kinds of processors
    (https://starpu.gitlabpages.inria.fr). It places a task well once it has measured the task's
    codelet about ten times at that size on every kind of worker; until then it deals tasks out.
    """


def _read_id(text: str) -> str:
    if not text:
        raise ValueError("the id is missing")
    return text


@option.command(of=starpu, short="Write performance models that StarPU reads.")
def export(  # noqa: PLR0913 - each is an option
    codelet_files: tuple[Path, ...] = option.argument("CODELETS.yaml..."),
    devices: Mapping[str, str] = option.pairs(
        "--device WORKER=ID",
        "The OpenCL device behind a worker, such as opencl0=ID (an id or its beginning), instead "
        "of the file's `device`; may be repeated.",
        _read_id, "WORKER=ID, for example opencl0=cpu-pocl",
    ),
    estimate_files: tuple[Path, ...] = option.given(
        "--estimates FILE",
        "What `kernelcast estimate --json` has written, instead of estimating now; may be "
        "repeated.",
    ),
    observed: bool = option.given(
        "--observed",
        "Prefer observed times of the same launch from the store.",
    ),
    place: str | None = STORE,
    times_files: tuple[Path, ...] = option.given(
        "--times FILE",
        "Samples or seconds of CPU implementations and other functions (JSON); may be repeated.",
    ),
    folder: Path | None = option.given(
        "--into FOLDER",
        "What STARPU_PERF_MODEL_DIR will name.  [default: STARPU_PERF_MODEL_DIR, or "
        "~/.starpu/sampling]",
    ),
    host: str | None = option.given(
        "--host NAME",
        "Name of the machine that will run the program.  [default: STARPU_HOSTNAME, or this "
        "machine's]",
    ),
    samples: int = option.given(
        "--samples N",
        "Measurements that each time counts as. StarPU trusts 10, and forgets a time after as "
        "many that contradict it.",
        default=10,
    ),
    plan: SamplingPlan = option.settings(
        budget=option.given(
            "--budget SHARE",
            "Device time for an estimate's samples as a share of the predicted time.",
        )
    ),
    timeout_s: float = option.given(
        "--timeout SECONDS", "Time limit in seconds for each estimate.", default=DEFAULT_TIMEOUT_S
    ),
) -> None:  # fmt: skip
    """Write performance models that StarPU reads, one file per codelet.

    CODELETS.yaml names the codelets, the sizes of their tasks, and for each OpenCL worker the
    problem file of its kernel. Times of kernels are estimated now, by running a few work-groups,
    or come from --estimates or the store.

    Exit status: 0 when all files are written, 1 when a device failed, 2 for bad input, 130 after
    Ctrl-C.
    """
    named = {parse_worker(name): device for name, device in devices.items()}
    codelets: dict[str, tuple[TaskSize, ...]] = {}
    for path in codelet_files:
        for symbol, asked in read_codelets(path).items():
            if symbol in codelets:
                raise InputError(f"{path}: codelet {symbol} is in another file too; keep one")
            codelets[symbol] = tuple(
                replace(one, device_id=named.get(one.worker, one.device_id)) for one in asked
            )
    workers_there = {one.worker for asked in codelets.values() for one in asked}
    for worker in named.keys() - workers_there:
        there = ", ".join(map(str, sorted(workers_there)))
        raise InputError(f"--device {worker}: no codelet has that worker; there are {there}")
    total, models = sum(map(len, codelets.values())), list[list[TaskSize]]()
    with ExitStack() as stack:
        tell = stack.enter_context(progress_bar())
        # The first source that knows a time answers.
        sources: list[TimeSource] = [read_times(times_files)]
        if observed:
            store = stack.enter_context(open_data_store(place, must_exist=True))
            sources.append(recall_observed(store))
        sources.append(
            read_estimates(estimate_files)
            if estimate_files
            else estimate_now(EstimateSettings(plan=plan), timeout_s=timeout_s)
        )
        for asked in codelets.values():
            models.append([])
            for wanted in asked:
                tell(sum(map(len, models)), total, wanted.label)
                time = next((one for source in sources if (one := source(wanted))), None)
                if time is None:
                    hint = (
                        "it has no `problem`; give its times by --times"
                        if wanted.problem is None
                        else "give --estimates with this size, --store with observations of it, or "
                        "neither"
                    )
                    raise InputError(f"{wanted.label}: no time is known; {hint}")
                models[-1].append(replace(wanted, **time))
    # Files are written when all times are known: a failure leaves StarPU's folder as it was.
    paths = [save_model(one, folder, host=host, samples=samples) for one in models]
    content: list[dict[str, Any]] = [
        {
            "codelet": one.symbol,
            "worker": str(one.worker),
            **pick(one, "parameters", "size_bytes", "flops"),
            "footprint": f"{one.footprint:08x}",
            **pick(one, "seconds", "origin", deviation_seconds="deviation_s"),
            "device_id": one.device_id or None,
            "file": str(path),
        }
        for model, path in zip(models, paths, strict=True)
        for one in model
    ]
    table = Table.of(content, {
        "codelet": "text", "worker": "text",
        "size": ("text", lambda one: ", ".join(f"{k}={v}" for k, v in one["parameters"].items())),
        "footprint": "text", "time": ("s", "seconds"),
        "+-": ("s", lambda one: one["deviation_seconds"] or ""), "from": ("text", "origin"),
        "device": ("text", "device_id"),
    })  # fmt: skip
    present(content, table, *(f"wrote {path}" for path in paths))
