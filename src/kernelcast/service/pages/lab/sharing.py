"""A question of the Lab elsewhere: fields of a problem that was sent, and programs that ask it."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pprint import pformat
from typing import Any, Final

from kernelcast.service.pages.lab.fields import LabFields

_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-+ */()")


def fields_of_content(content: Mapping[str, Any], devices: Sequence[str] = ()) -> LabFields:
    """Write a problem, as the API takes it, into the Lab's fields."""
    return LabFields(
        code=str(content.get("code", "")),
        kernel=str(content.get("kernel", "")),
        build_options=" ".join(map(str, content.get("build_options") or ())),
        parameters=", ".join(f"{name} = {one}" for name, one in _items(content, "parameters")),
        global_size=_write_sizes(content.get("global_size")),
        local_size=_write_sizes(content.get("local_size")),
        global_offset=_write_sizes(content.get("global_offset")),
        args="\n".join(write_argument(one) for one in content.get("args") or ()),
        devices=tuple(devices),
    )


def write_argument(held: Mapping[str, Any]) -> str:
    """Write an argument as a line of the Lab.

    Examples
    --------
    >>> write_argument({"buffer": "float32", "count": "{N} * 2", "init": "uniform"})
    'buffer: float32, count: "{N} * 2", init: uniform'
    """
    return ", ".join(f"{name}: {_write(one)}" for name, one in held.items())


def write_curl(address: str, asked: Mapping[str, Any]) -> str:
    """Write the request as a command."""
    body = shlex.quote(json.dumps(asked, indent=1, ensure_ascii=False))
    return (
        f"curl {shlex.quote(address + '/v1/estimates')} \\\n"
        f"  -H 'Content-Type: application/json' \\\n  -d {body}"
    )


def write_python(address: str, problem: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """Write the request as a program that uses the client."""
    code = str(problem["code"]).replace("\\", "\\\\").replace('"""', r"\"\"\"")
    rest = pformat({key: one for key, one in problem.items() if key != "code"}, sort_dicts=False)
    words = "".join(f", {name}={value!r}" for name, value in options.items())
    return (
        f'from kernelcast.client import Client\n\nCODE = """{code}"""\n'
        f"PROBLEM = {{'code': CODE, **{rest}}}\n\n"
        f"with Client({address!r}) as client:\n"
        f"    for answer in client.estimate(PROBLEM{words}):\n"
        "        print(answer.device, answer.seconds, answer.low, answer.high)\n"
    )


def _items(content: Mapping[str, Any], name: str) -> Sequence[tuple[str, Any]]:
    found = content.get(name)
    return tuple(found.items()) if isinstance(found, Mapping) else ()


def _write_sizes(sizes: object) -> str:
    if isinstance(sizes, list | tuple):
        return ", ".join(map(str, sizes))
    return "" if sizes is None else str(sizes)


def _write(value: object) -> str:
    if isinstance(value, str) and (not value or set(value) - _PLAIN or not value[0].isalnum()):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_write, value))}]"
    return json.dumps(value) if isinstance(value, bool) else str(value)
