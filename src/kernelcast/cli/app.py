"""The program's frame: its commands, how errors end it, what it needs of the terminal."""

import io
import logging
import signal
import sys
import traceback
from types import FrameType

import click

from kernelcast.cli.groups import LazyGroup
from kernelcast.cli.options import wants_traceback
from kernelcast.cli.terminal import ExitStatus, complain, status_of
from kernelcast.records.errors import KernelcastError
from kernelcast.records.extras import explain_missing

_TEXT_WIDTH = 100


class _Commands(LazyGroup):
    """Ends every error as one clear line and an exit status."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(ExitStatus.INTERRUPTED)
        except KernelcastError as error:
            if wants_traceback(ctx):
                traceback.print_exc()
            complain(str(error))
            ctx.exit(status_of(error))
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:  # whatever it is: no traceback unless asked for
            if wants_traceback(ctx):
                raise
            ctx.exit(_report_failure(error))


def _report_failure(error: Exception) -> ExitStatus:
    """Say what broke, in one line; nothing where Ctrl-C broke it."""
    if _follows_interrupt(error):
        return ExitStatus.INTERRUPTED
    missing = explain_missing(error) if isinstance(error, ImportError) else None
    if missing is not None:
        complain(str(missing))
        return status_of(missing)
    if isinstance(error, OSError):  # a full disk under standard output, for instance
        complain(str(error))
    else:
        complain(f"internal error, please report it: {error!r} (--debug shows where)")
    return ExitStatus.FAILED


def _follows_interrupt(error: BaseException) -> bool:
    """Tell whether a library failed to end in order after Ctrl-C, as loky does while it starts."""
    before = error.__context__
    return before is not None and (
        isinstance(before, KeyboardInterrupt) or _follows_interrupt(before)
    )


@click.group(
    cls=_Commands,
    places="""
        balance balance:balance
        calibrate calibrate:calibrate
        collect collect:collect_command
        compare compare:compare
        compile compile:compile_command
        corpus corpus:corpus
        data groups:data
        devices devices:devices
        estimate estimate:estimate
        features features:features
        model groups:model
        models groups:models
        serve serve:serve
        starpu starpu:starpu
        trace trace:trace
        train train:train
        tune tune:tune
        validate validate:validate
    """,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": _TEXT_WIDTH},
)
@click.version_option(package_name="kernelcast", prog_name="kernelcast")
def app() -> None:
    """Predict how long an OpenCL kernel takes on each device, before it has run there.

    A few work-groups are run and timed; the time of the whole launch follows from them, with an
    interval.

    Exit status: 0 when every device answered, 1 when one failed, 2 for bad input, 130 after
    Ctrl-C.
    """


def main() -> None:
    """Run the program on the command line's arguments."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character of a device's name shows a question mark.
            stream.reconfigure(errors="replace")
    logging.getLogger("kernelcast").addHandler(logging.StreamHandler())  # to standard error
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup has reasons to ignore it
            signal.signal(number, _end)
    app()


def _end(number: int, _: FrameType | None) -> None:
    """End in order, so that a child process with an endless kernel ends as well."""
    sys.exit(128 + number)
