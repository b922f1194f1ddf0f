"""``kernelcast starpu``."""

from typing import Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.data.options import store_option
from kernelcast.launches.settings import DEFAULT_TIMEOUT_S, EstimateSettings

_DEFAULTS = EstimateSettings()


@click.group()
def starpu() -> None:
    """Give StarPU's schedulers predicted times before anything has run.

    StarPU is a task scheduler for machines with several kinds of processors
    (https://starpu.gitlabpages.inria.fr). It places a task well once it has measured the task's
    codelet about ten times at that size on every kind of worker; until then it deals tasks out.
    """


def _parse_devices(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Read ``WORKER=ID`` texts."""
    found = {}
    for text in texts:
        worker, equals, device_id = text.partition("=")
        if not (worker and equals and device_id):
            msg = f"{text!r}: expected WORKER=ID, for example opencl0=cpu-pocl"
            raise click.BadParameter(msg)
        found[worker] = device_id
    return found


@starpu.command(
    "export",
    context_settings={"show_default": True},
    short_help="Write performance models that StarPU reads.",
)
@click.argument(
    "codelet_files", metavar="CODELETS.yaml...", nargs=-1, required=True, type=option.FILE
)
@click.option(
    "--device",
    "devices",
    metavar="WORKER=ID",
    multiple=True,
    callback=_parse_devices,
    help="The OpenCL device behind a worker, such as opencl0=ID (its id or the beginning of it, "
    "see `kernelcast devices`); replaces the file's `device`; may be repeated.",
)
@option.file(
    "--estimates",
    "estimate_files",
    multiple=True,
    says="What `kernelcast estimate --json` has written, instead of estimating now; may be "
    "repeated.",
)
@option.flag(
    "--observed", says="Take times from the store where it has the very launch, before estimates."
)
@store_option
@option.file(
    "--times",
    "times_files",
    multiple=True,
    says="Samples or seconds of functions that are no OpenCL kernels, as CPU implementations are "
    "(JSON); may be repeated.",
)
@option.file(
    "--into",
    "folder",
    metavar="FOLDER",
    says="What STARPU_PERF_MODEL_DIR will name.  [default: STARPU_PERF_MODEL_DIR, or "
    "~/.starpu/sampling]",
)
@click.option(
    "--host",
    metavar="NAME",
    help="Name of the machine that will run the program.  [default: STARPU_HOSTNAME, or this "
    "machine's]",
)
@option.count(
    "--samples",
    default=10,
    says="Measurements that each time counts as. StarPU believes 10, and forgets a time after as "
    "many measurements that contradict it.",
)
@click.option(
    "--budget",
    metavar="SHARE",
    type=float,
    default=_DEFAULTS.plan.budget,
    help="Device time that an estimate's sampling may take, as a share of the predicted time.",
)
@option.timeout(DEFAULT_TIMEOUT_S, "Time limit in seconds for each estimate.", kind=float)
@option.json("Print a JSON list, one object per time, instead of a table.")
@option.debug
@click.pass_context
def export(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - ExportRequest has the types
    """Write performance models that StarPU reads, one file per codelet.

    CODELETS.yaml names the codelets, the sizes of their tasks, and for each OpenCL worker the
    problem file of its kernel. Times of kernels are estimated now, by running a few work-groups,
    or come from --estimates or the store.

    Exit status: 0 when all files are written, 1 when a device failed, 2 for bad input, 130 after
    Ctrl-C.
    """
    # Estimates take longer to import than all other commands do.
    from kernelcast.cli.starpu.export import ExportRequest, run_export

    ctx.exit(run_export(ExportRequest(**options)))
