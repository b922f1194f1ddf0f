"""Says what to give where a caller's value is of another kind than the one that is meant."""

from collections.abc import Callable, Iterable
from numbers import Real
from pathlib import Path
from typing import Any

from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError
from kernelcast.records.launch_identity import LaunchIdentity
from kernelcast.records.problem import Problem


def check_problem(given: object) -> Problem:
    """Give a problem back; refuse anything else, as a path, the usual mistake."""
    if isinstance(given, Problem):
        return given
    what = f"the path {str(given)!r}" if isinstance(given, str | Path) else type(given).__name__
    msg = (
        f"problem: {what} given; give a Problem, which kernelcast.read_problem(path) reads, or a "
        "kernelcast.Launch of pyopencl objects"
    )
    raise InputError(msg)


def list_launches(given: object, is_live: Callable[[object], bool]) -> list[Any]:
    """Give the launches of a caller; one alone is no sequence of them."""
    if isinstance(given, str | Path) or not isinstance(given, Iterable):
        what = repr(str(given)) if isinstance(given, str | Path) else type(given).__name__
        msg = f"launches: {what} given; give a sequence of Problem, such as [problem]"
        raise InputError(msg)
    return [one if is_live(one) else check_problem(one) for one in given]


def check_problem_path(given: object) -> None:
    """Refuse what is no path; a problem that was read already is the usual mistake."""
    if not isinstance(given, str | Path):
        msg = (
            f"problem file: {type(given).__name__} given; give the path of a YAML file. "
            "kernelcast.Predictor().estimate(problem, device) takes a Problem"
        )
        raise InputError(msg)


def check_device(given: object) -> str | DeviceDescription:
    """Give an id or a description of a device back; refuse anything else."""
    if isinstance(given, str | DeviceDescription):
        return given
    msg = (
        f"device: {type(given).__name__} given; give an id, or its beginning, as "
        "`kernelcast devices` lists them"
    )
    raise InputError(msg)


def check_device_ids(given: object) -> None:
    """Refuse one id where several are meant: its letters would be taken for ids."""
    if isinstance(given, str | DeviceDescription):
        name = given if isinstance(given, str) else given.id
        msg = f"devices: {name!r} given; give a sequence, such as [{name!r}]"
        raise InputError(msg)


def check_identity(given: object) -> LaunchIdentity:
    """Give an identity back; refuse anything else that no launch could be observed by."""
    if isinstance(given, LaunchIdentity):
        return given
    msg = (
        f"launch: {type(given).__name__} given; give the Estimate that the predictor has "
        "answered, its identity, or a kernelcast.Launch"
    )
    raise InputError(msg)


def check_number(name: str, given: object) -> None:
    if not isinstance(given, Real):
        msg = f"{name}: {type(given).__name__} given; give a number"
        raise InputError(msg)
