"""The program's frame: its commands, how errors end it, what it needs of the terminal."""

import importlib
import io
import logging
import signal
import sys
import traceback
from typing import Any

import click

from kernelcast.cli.terminal import DEBUG, ExitStatus, complain, present, status_of
from kernelcast.records.errors import KernelcastError, NoDeviceError, explain_missing


class _Places(dict[str, Any]):
    """Where commands are, a line each: one is imported when it is asked for, and no other."""

    def __init__(self, lines: str) -> None:
        super().__init__(one.split() for one in lines.strip().splitlines())

    def get(self, name: str, default: Any = None, /) -> Any:  # noqa: ANN401 - a dictionary's
        place = super().get(name, default)
        if not isinstance(place, str):  # it was added by a decorator
            return place
        module, _, command = place.partition(":")
        return getattr(importlib.import_module(f"kernelcast.cli.{module}"), command)


class _Commands(click.Group):
    """Ends every error as one clear line and an exit status."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(ExitStatus.INTERRUPTED)
        except KernelcastError as error:
            if ctx.meta.get(DEBUG):
                traceback.print_exc()
            if isinstance(error, NoDeviceError):
                present([])  # a list that is empty is JSON, too
            complain(str(error))
            ctx.exit(status_of(error))
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:  # whatever it is: no traceback unless asked for
            if ctx.meta.get(DEBUG):
                raise
            if _follows_interrupt(error):
                ctx.exit(ExitStatus.INTERRUPTED)
            missing = explain_missing(error) if isinstance(error, ImportError) else None
            if missing is not None:
                complain(str(missing))
                ctx.exit(status_of(missing))
            known = isinstance(error, OSError)  # a full disk under standard output, for instance
            unknown = f"internal error, please report it: {error!r} (--debug shows where)"
            complain(str(error) if known else unknown)
            ctx.exit(ExitStatus.FAILED)


def _follows_interrupt(error: BaseException) -> bool:
    """Tell whether a library failed to end in order after Ctrl-C, as loky does while it starts."""
    before = error.__context__
    return before is not None and (
        isinstance(before, KeyboardInterrupt) or _follows_interrupt(before)
    )


@click.group(
    cls=_Commands,
    commands=_Places("""
        balance balance:balance
        calibrate calibrate:calibrate
        collect collect:collect_command
        compare training:compare
        compile compile:compile_command
        corpus corpus:corpus
        data data:data
        devices devices:devices
        estimate estimate:estimate
        features features:features
        models models:models
        serve serve:serve
        starpu starpu:starpu
        trace trace:trace
        train training:train
        tune tune:tune
        validate training:validate
    """),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="kernelcast", prog_name="kernelcast")
def app() -> None:
    """Predict how long an OpenCL kernel takes on each device, before it has run there.

    A few work-groups are run and timed; the time of the whole launch follows from them, with an
    interval.

    Exit status: 0 when every device answered, 1 when one failed, 2 for bad input, 130 after
    Ctrl-C.
    """


@app.group(
    commands=_Places("""
        cpu model.cpu:cpu
        fit model.gpu:fit
        gpu model.gpu:gpu
        scratchpad model.scratchpad:scratchpad
    """),
    short_help="Ask the analytic models of caches, bandwidth and latency.",
)
def model() -> None:
    """Ask the analytic models: time from addresses and a machine description, nothing is run."""


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character of a device's name shows a question mark.
            stream.reconfigure(errors="replace")
    logging.getLogger("kernelcast").addHandler(logging.StreamHandler())  # to standard error
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup has reasons to ignore it
            # In order, so that a child process with an endless kernel ends as well.
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    app()
