"""Options of commands: parameters of a function, settings, and those that several commands share.

>>> @command()
... def greet(
...     name: str = argument("NAME"),
...     loud: bool = given("--loud", "Shout."),
...     runs: int = given("--runs N", "How often.", default=1),
... ) -> None:
...     click.echo(name * runs)
>>> _ = greet(["hi", "--runs", "2"], standalone_mode=False)
hihi

Options that are settings go into the settings' own record: ``= settings(runs=given("--runs N",
"How often."))`` takes types and defaults of its fields. Options that several commands share are
declared here.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields
from enum import Enum
from inspect import cleandoc, signature
from operator import itemgetter
from pathlib import Path
from types import NoneType
from typing import Any, Final, get_args, get_origin, get_type_hints

import click

from kernelcast.cli.terminal import DEBUG, JSON, PLOT_FILE, ExitStatus
from kernelcast.launches.settings import DEFAULT_LEAST_GAIN, DEFAULT_TIMEOUT_S
from kernelcast.records.arithmetic import ArithmeticProblem, evaluate
from kernelcast.records.errors import InputError

FILE = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)
COUNT = click.IntRange(min=1)
POSITIVE = click.FloatRange(min=0, min_open=True)
AS_JSON: Final = "Print JSON instead of tables. Times are in seconds."
_EXIT_STATUS: Final = (
    "Exit status: 0 when every device answered, 1 when one failed, 2 for bad input, 130 after "
    "Ctrl-C."
)
_MOST_SIZES: Final = 10_000


def read_range(text: str, *, given_as: str, example: str) -> tuple[int, ...]:
    """Read a number or ``FIRST:LAST:STEP``, of arithmetic; the last value belongs to it."""
    expected = f"{given_as}: expected a whole number or FIRST:LAST:STEP, such as {example}"
    try:
        numbers = [evaluate(one) for one in text.split(":")]
    except ArithmeticProblem as problem:
        raise InputError(f"{expected} ({problem})") from problem
    if len(numbers) > 3 or any(int(number) != number for number in numbers):
        raise InputError(expected)
    # One number is a range of itself; a step that is left out is 1.
    first, last, step = map(int, (*numbers, *(numbers[0], 1)[len(numbers) - 1 :]))
    if step < 1 or not 0 < first <= last or (last - first) // step >= _MOST_SIZES:
        raise InputError(f"{expected}, with 0 < FIRST <= LAST and at most {_MOST_SIZES} sizes")
    return tuple(range(first, last + 1, step))


def refuse(wrong: Mapping[str, object]) -> None:
    """Refuse options that contradict each other: what is wrong with them, and whether it holds."""
    for message, is_wrong in wrong.items():
        if is_wrong:
            raise click.UsageError(message)


def given(flags: str, says: str, **more: Any) -> Any:  # noqa: ANN401 - the field has the type
    *names, last = flags.split()
    if last.startswith("-"):
        return field(metadata={"names": (*names, last), "click": {"help": says, **more}})
    return field(metadata={"names": names, "click": {"help": says, "metavar": last, **more}})


def pairs(flags: str, says: str, read: Callable[[str], object], expected: str) -> Any:  # noqa: ANN401 - the field has the type
    """Declare an option ``NAME=VALUE`` that may be repeated; a `ValueError` of `read` refuses."""

    def parse(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, object]:
        found = {}
        for text in texts:
            name, equals, value = text.partition("=")
            try:
                if not name.strip() or (equals and not value):
                    raise ValueError("a part is missing")
                found[name.strip()] = read(value)
            except ValueError as error:
                raise click.BadParameter(f"{text!r}: expected {expected} ({error})") from error
        return found

    return given(flags, says, multiple=True, type=str, callback=parse)


def numbers(flags: str, says: str) -> Any:  # noqa: ANN401 - the field has the type
    """Declare an option ``NAME=NUMBER`` that may be repeated; values may be arithmetic."""
    return pairs(flags, says, evaluate, "NAME=NUMBER")


def argument(metavar: str, **more: Any) -> Any:  # noqa: ANN401 - the field has the type
    """Declare an argument; a tuple takes all that are there."""
    return field(metadata={"names": None, "click": {"metavar": metavar, **more}})


def settings(**options: Any) -> Any:  # noqa: ANN401 - the field has the type
    """Declare options as fields of a settings record, with the types and defaults of its fields."""
    return field(metadata={"settings": options})


def command(
    name: str | None = None,
    *,
    short: str | None = None,
    json: str = AS_JSON,
    plot: str = "",
    of: click.Group | None = None,
    is_group: bool = False,
) -> Callable[[Callable[..., ExitStatus | None]], Any]:
    """Make a command of a function: its parameters, and fields of settings, are options.

    `json` and `plot` are the help texts of the options that `present` looks at, `of` is the group
    that the command belongs to. One that is a group runs itself where no command of it is named.
    """

    def make(run: Callable[..., ExitStatus | None]) -> click.Command:
        hints = get_type_hints(run)
        leaves: dict[str, tuple[Mapping[str, Any], Any]] = {}
        parts = {
            one.name: _declare(
                one.name, getattr(one.default, "metadata", {}), hints[one.name], leaves
            )
            for one in signature(run).parameters.values()
        }

        @click.pass_context
        def call(ctx: click.Context, /, **values: Any) -> None:  # noqa: ANN401 - `run` has the types
            ctx.meta[JSON] = values.pop("as_json", False)
            ctx.meta[PLOT_FILE] = values.pop("plot_file", None)
            if ctx.meta[PLOT_FILE] is not None:
                from kernelcast.reports.drawing import check_plot  # loads NumPy

                check_plot(ctx.meta[PLOT_FILE])
            if ctx.invoked_subcommand is None:
                ctx.exit(run(**{place: part(values) for place, part in parts.items()}) or 0)

        made: Any = click.option(
            "--debug", is_flag=True, is_eager=True, expose_value=False,
            callback=lambda ctx, _, value: ctx.meta.update({DEBUG: value}),
            help="Show Python's traceback of an error.",
        )(call)  # fmt: skip
        if plot:
            file, _, text = plot.partition(": ")
            made = click.option("--plot", "plot_file", metavar=file, type=FILE, help=text)(made)
        if json:
            made = click.option("--json", "as_json", is_flag=True, help=json)(made)
        for option_name, (option, hint) in reversed(leaves.items()):
            made = _make_option(option_name, option, hint)(made)
        about = run.__doc__ or ""
        if hints["return"] is ExitStatus and "Exit status" not in about:
            about = f"{cleandoc(about)}\n\n{_EXIT_STATUS}"
        register: Any = click.command if of is None else of.command
        group = {"cls": click.Group, "invoke_without_command": True} if is_group else {}
        registered: click.Command = register(
            name or run.__name__, help=about, short_help=short,
            context_settings={"show_default": True}, **group,
        )(made)  # fmt: skip
        return registered

    return make


def _declare(
    name: str,
    declared: Mapping[str, Any],
    hint: Any,  # noqa: ANN401 - a type
    leaves: dict[str, tuple[Mapping[str, Any], Any]],
) -> Callable[[Mapping[str, Any]], Any]:
    """List the options of a parameter or setting, and make what makes its value of theirs."""
    if "settings" not in declared:
        leaves[name] = declared, hint
        return itemgetter(name)
    options = {each: one.metadata for each, one in declared["settings"].items()}
    defaults = {one.name: one.default for one in fields(hint)}
    for each, one in options.items():
        if one.get("names") and defaults[each] not in {MISSING, None, ()}:
            options[each] = {**one, "click": {"default": defaults[each], **one["click"]}}
    hints = get_type_hints(hint)
    parts = {each: _declare(each, one, hints[each], leaves) for each, one in options.items()}
    return lambda values: hint(**{each: part(values) for each, part in parts.items()})


def _make_option(
    name: str,
    declared: Mapping[str, Any],
    hint: Any,  # noqa: ANN401 - a type
) -> Callable[[Any], Any]:
    """Make click's option or argument of what `given` or `argument` declared."""
    names, more = declared["names"], dict(declared["click"])
    default = more.get("default")
    kind = next(one for one in (get_args(hint) or (hint,)) if one not in {NoneType, Ellipsis})
    many = get_origin(hint) if get_origin(hint) in {tuple, frozenset} else None
    if kind is bool:
        more.setdefault("is_flag", True)
        if default is True and "/" not in names[0]:  # --no-something
            more |= {"default": False, "callback": lambda _, __, value: not value}
    elif isinstance(kind, type) and issubclass(kind, Enum):
        more.setdefault("type", click.Choice([one.value for one in kind]))
        if many is None:
            if default is not None:
                more["default"] = str(default.value)
            more["callback"] = lambda _, __, value: None if value is None else kind(value)
        else:
            more.pop("default", None)
            more["callback"] = lambda _, __, values: many(map(kind, values)) or default or many()
    else:
        more.setdefault("type", {Path: FILE, int: COUNT}.get(kind, kind))
    if names is None:
        number = {"nargs": -1} if many else {}
        required = NoneType not in get_args(hint)
        return click.argument(name, **{"required": required, **number, **more})
    if many and "nargs" not in more:
        more.setdefault("multiple", True)
    return click.option(*names, name, **more)


device: Any = given(
    "--device ID",
    "Only this device (its id or the beginning of it); may be repeated.  [default: all devices]",
)
parameters: Any = numbers(
    "-p --param NAME=VALUE",
    "Replace a value of the file's `parameters`, for example N=2**20; may be repeated.",
)
least_gain: Any = given(
    "--least-gain SECONDS",
    "If samples of a launch or other sizes of its kernel are known: sample only if a second of it "
    "narrows the interval by so many seconds; 0: always.",
    type=click.FloatRange(min=0), default=DEFAULT_LEAST_GAIN,
)  # fmt: skip
timeout: Any = given(
    "--timeout SECONDS",
    "Time limit for each problem on each device, build included; then the process that runs the "
    "kernel is stopped.",
    default=DEFAULT_TIMEOUT_S,
)
seed: Any = given(
    "--seed N", "Seed of random buffer contents and of the sampled places.",
    type=click.IntRange(min=0), default=0,
)  # fmt: skip
