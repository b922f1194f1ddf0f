"""Options that several commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kernelcast.predictor.problem_file.arithmetic import ArithmeticProblem, Number, evaluate

Command = TypeVar("Command", bound=Callable[..., Any])
_DEBUG = "kernelcast.debug"


def json_option(command: Command) -> Command:
    """Add ``--json``."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print a JSON list, one object per device, instead of a table. Times are in seconds.",
    )(command)


def device_option(command: Command) -> Command:
    """Add ``--device``, which may be repeated."""
    return click.option(
        "--device",
        "device_ids",
        metavar="ID",
        multiple=True,
        help="Ask this device only (its id or the beginning of it, see `kernelcast devices`); may "
        "be repeated.  [default: all devices]",
    )(command)


def parameters_option(command: Command) -> Command:
    """Add ``--param``, which may be repeated."""
    return click.option(
        "-p",
        "--param",
        "parameters",
        metavar="NAME=VALUE",
        multiple=True,
        callback=parse_parameters,
        help="Replace a value of the problem file's `parameters`, for example N=2**20; may be "
        "repeated.",
    )(command)


def seed_option(command: Command) -> Command:
    """Add ``--seed``."""
    return click.option(
        "--seed",
        metavar="N",
        type=click.IntRange(min=0),
        default=0,
        help="Seed of random buffer contents and of the sampled places.",
    )(command)


def debug_option(command: Command) -> Command:
    """Add ``--debug``."""
    return click.option(
        "--debug",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_remember_debug,
        help="Show Python's traceback of an error.",
    )(command)


def wants_traceback(ctx: click.Context) -> bool:
    """Tell whether ``--debug`` was given to any command."""
    return bool(ctx.meta.get(_DEBUG))


def parse_parameters(
    _: click.Context, __: click.Parameter, texts: tuple[str, ...]
) -> dict[str, Number]:
    """Read ``NAME=VALUE`` texts; values may be arithmetic, such as ``2**14``."""
    parameters = {}
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            parameters[name.strip()] = evaluate(value)
        except ArithmeticProblem as problem:
            msg = f"{text!r}: expected NAME=NUMBER ({problem})"
            raise click.BadParameter(msg) from problem
        if not (name.strip() and equals):
            msg = f"{text!r}: expected NAME=NUMBER"
            raise click.BadParameter(msg)
    return parameters


def _remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[_DEBUG] = value
