"""Says what to give where a caller's value is of another kind than the one that is meant."""

from collections.abc import Iterable
from numbers import Real
from pathlib import Path

from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.problem import Problem


def check_problem(given: object) -> None:
    """Refuse what is no problem; a path is the usual mistake.

    Raises
    ------
    InputError
        If it is something else.
    """
    if isinstance(given, Problem):
        return
    what = f"the path {str(given)!r}" if isinstance(given, str | Path) else type(given).__name__
    msg = f"problem: {what} given; give a Problem, which kernelcast.read_problem(path) reads"
    raise InputError(msg)


def list_problems(given: object) -> list[Problem]:
    """Give the problems of a caller; one alone is no sequence of them.

    Raises
    ------
    InputError
        If it is something else, or holds something else.
    """
    if isinstance(given, str | Path) or not isinstance(given, Iterable):
        what = repr(str(given)) if isinstance(given, str | Path) else type(given).__name__
        msg = f"launches: {what} given; give a sequence of Problem, such as [problem]"
        raise InputError(msg)
    problems = list(given)
    for one in problems:
        check_problem(one)
    return problems


def check_problem_path(given: object) -> None:
    """Refuse what is no path; a problem that was read already is the usual mistake.

    Raises
    ------
    InputError
        If it is something else.
    """
    if isinstance(given, str | Path):
        return
    msg = (
        f"problem file: {type(given).__name__} given; give the path of a YAML file. "
        "kernelcast.Predictor().estimate(problem, device) takes a Problem"
    )
    raise InputError(msg)


def check_device(given: object) -> None:
    """Refuse what names no device.

    Raises
    ------
    InputError
        If it is neither an id nor a description.
    """
    if not isinstance(given, str | DeviceDescription):
        msg = (
            f"device: {type(given).__name__} given; give an id, or its beginning, as "
            "`kernelcast devices` lists them"
        )
        raise InputError(msg)


def check_device_ids(given: object) -> None:
    """Refuse one id where several are meant: its letters would be taken for ids.

    Raises
    ------
    InputError
        If it is a text.
    """
    if isinstance(given, str | DeviceDescription):
        name = given if isinstance(given, str) else given.id
        msg = f"devices: {name!r} given; give a sequence, such as [{name!r}]"
        raise InputError(msg)


def check_identity(given: object) -> None:
    """Refuse what names no launch that could be observed.

    Raises
    ------
    InputError
        If it is something else.
    """
    if not isinstance(given, LaunchIdentity):
        msg = (
            f"launch: {type(given).__name__} given; give the Estimate that the predictor has "
            "answered, or its identity"
        )
        raise InputError(msg)


def check_number(name: str, given: object) -> None:
    """Refuse what is no number.

    Raises
    ------
    InputError
        If it is something else.
    """
    if not isinstance(given, Real):
        msg = f"{name}: {type(given).__name__} given; give a number"
        raise InputError(msg)
