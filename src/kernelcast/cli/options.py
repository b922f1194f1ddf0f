"""Options of commands: parameters of a function, those that several commands share, and records.

>>> @command()
... def greet(
...     name: str = argument("NAME"),
...     loud: bool = given("--loud", "Shout."),
...     runs: int = given("--runs N", "How often.", default=1),
... ) -> None:
...     click.echo(name * runs)
>>> _ = greet(["hi", "--runs", "2"], standalone_mode=False)
hihi

Many options stand in a record, whose fields are declared alike; a parameter of its type takes them.
An option that several commands share is a decorator here; ``= use(decorator)`` takes it.
"""

from collections.abc import Callable, Mapping
from dataclasses import field, fields, is_dataclass
from enum import Enum
from inspect import signature
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin, get_type_hints

import click

from kernelcast.cli.terminal import ExitStatus
from kernelcast.launches.settings import DEFAULT_LEAST_GAIN
from kernelcast.records.errors import InputError

if TYPE_CHECKING:  # slow to load
    from _typeshed import DataclassInstance

    from kernelcast.records.arithmetic import Number

Record = TypeVar("Record", bound="DataclassInstance")
FILE = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)
COUNT = click.IntRange(min=1)
POSITIVE = click.FloatRange(min=0, min_open=True)
_DEBUG: Final = "kernelcast.debug"
_MOST_SIZES: Final = 10_000


def parse_parameters(
    _: click.Context, __: click.Parameter, texts: tuple[str, ...]
) -> "dict[str, Number]":
    """Read ``NAME=VALUE`` texts; values may be arithmetic, such as ``2**14``."""
    from kernelcast.records.arithmetic import ArithmeticProblem, evaluate  # slow to load

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


def read_range(text: str, *, given_as: str, example: str) -> tuple[int, ...]:
    """Read ``FIRST:LAST:STEP``, which may be arithmetic; the last value belongs to it."""
    from kernelcast.records.arithmetic import ArithmeticProblem, evaluate

    expected = f"{given_as}: expected FIRST:LAST:STEP, such as {example}"
    try:
        numbers = [evaluate(one) for one in text.split(":")]
    except ArithmeticProblem as problem:
        msg = f"{expected} ({problem})"
        raise InputError(msg) from problem
    if len(numbers) not in {2, 3} or any(int(number) != number for number in numbers):
        raise InputError(expected)
    first, last, step = (int(one) for one in (*numbers, 1)[:3])
    if step < 1 or not 0 < first <= last or (last - first) // step >= _MOST_SIZES:
        msg = f"{expected}, with 0 < FIRST <= LAST and at most {_MOST_SIZES} sizes"
        raise InputError(msg)
    return tuple(range(first, last + 1, step))


def pick(kind: type[Record], options: object, **more: Any) -> Record:  # noqa: ANN401
    """Make a record of those options that are called as its fields are."""
    names = [
        one.name for one in fields(kind) if one.name not in more and hasattr(options, one.name)
    ]
    return kind(**{name: getattr(options, name) for name in names}, **more)


def given(flags: str, says: str, **more: Any) -> Any:  # noqa: ANN401 - the field has the type
    """Declare an option as a field of a command's record."""
    *names, last = flags.split()
    if last.startswith("-"):
        return field(metadata={"names": (*names, last), "click": {"help": says, **more}})
    return field(metadata={"names": names, "click": {"help": says, "metavar": last, **more}})


def numbers(flags: str, says: str) -> Any:  # noqa: ANN401 - the field has the type
    """Declare an option ``NAME=NUMBER`` that may be repeated, see `given`."""
    return given(flags, says, multiple=True, type=str, callback=parse_parameters)


def argument(metavar: str, **more: Any) -> Any:  # noqa: ANN401 - the field has the type
    """Declare an argument as a field of a command's record; a tuple takes all that are there."""
    return field(metadata={"names": None, "click": {"metavar": metavar, **more}})


def use(decorator: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - the field has the type
    """Declare an option that a decorator makes as a field of a command's record."""
    return field(metadata={"decorator": decorator})


def command(
    name: str | None = None, *, short: str | None = None
) -> Callable[[Callable[..., ExitStatus | None]], click.Command]:
    """Make a command of a function: its parameters, and the fields of a record, are options."""

    def make(run: Callable[..., ExitStatus | None]) -> click.Command:
        hints = get_type_hints(run)
        records: dict[str, Any] = {}
        declared: list[tuple[str, Any, Any]] = []
        for one in signature(run).parameters.values():
            kind = hints[one.name]
            if is_dataclass(kind):
                records[one.name], inside = kind, get_type_hints(kind)
                declared += [(each.name, each, inside[each.name]) for each in fields(kind)]
            else:
                declared.append((one.name, one.default, kind))

        @click.pass_context
        def call(ctx: click.Context, /, **values: Any) -> None:  # noqa: ANN401 - `run` has the types
            for place, kind in records.items():
                values[place] = kind(**{one.name: values.pop(one.name) for one in fields(kind)})
            status = run(**values)
            if status:
                ctx.exit(status)

        made: Any = debug(call)
        for option_name, option, hint in reversed(declared):
            made = _make_option(option_name, option.metadata, hint)(made)
        return click.command(
            name or run.__name__, help=run.__doc__, short_help=short,
            context_settings={"show_default": True},
        )(made)  # fmt: skip

    return make


def _make_option(
    name: str,
    declared: Mapping[str, Any],
    hint: Any,  # noqa: ANN401 - a type
) -> Callable[[Any], Any]:
    """Make click's option or argument of what `given`, `argument` or `use` declared."""
    decorator: Callable[[Any], Any] | None = declared.get("decorator")
    if decorator is not None:
        return decorator
    names, more = declared["names"], dict(declared["click"])
    inner = [one for one in (get_args(hint) or (hint,)) if one not in {NoneType, Ellipsis}]
    is_many = get_origin(hint) is tuple
    kind = inner[0]
    if kind is bool:
        more.setdefault("is_flag", True)
    elif "type" not in more:
        more["type"] = FILE if kind is Path else kind
        if isinstance(kind, type) and issubclass(kind, Enum):
            more["type"] = click.Choice([one.value for one in kind])
            more["callback"] = lambda _, __, value: None if value is None else kind(value)
    if names is None:
        number = {"nargs": -1} if is_many else {}
        required = NoneType not in get_args(hint)
        return click.argument(name, **{"required": required, **number, **more})
    if is_many and "nargs" not in more:
        more.setdefault("multiple", True)
    return click.option(*names, name, **more)


def wants_traceback(ctx: click.Context) -> bool:
    """Tell whether ``--debug`` was given to any command."""
    return bool(ctx.meta.get(_DEBUG))


def _remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[_DEBUG] = value


json_flag = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
json_list = click.option(
    "--json", "as_json", is_flag=True,
    help="Print a JSON list, one object per device, instead of a table. Times are in seconds.",
)  # fmt: skip
device = click.option(
    "--device", "device_ids", metavar="ID", multiple=True,
    help="Ask this device only (its id or the beginning of it, see `kernelcast devices`); may be "
    "repeated.  [default: all devices]",
)  # fmt: skip
parameters = click.option(
    "-p", "--param", "parameters", metavar="NAME=VALUE", multiple=True, callback=parse_parameters,
    help="Replace a value of the problem file's `parameters`, for example N=2**20; may be "
    "repeated.",
)  # fmt: skip
least_gain = click.option(
    "--least-gain", metavar="SECONDS", type=click.FloatRange(min=0), default=DEFAULT_LEAST_GAIN,
    help="Where earlier samples of a launch, or other sizes of its kernel, are known: seconds by "
    "which a second of sampling has to narrow the interval, or it is left out. 0: sample always.",
)  # fmt: skip
seed = click.option(
    "--seed", metavar="N", type=click.IntRange(min=0), default=0,
    help="Seed of random buffer contents and of the sampled places.",
)  # fmt: skip
debug = click.option(
    "--debug", is_flag=True, is_eager=True, expose_value=False, callback=_remember_debug,
    help="Show Python's traceback of an error.",
)  # fmt: skip
