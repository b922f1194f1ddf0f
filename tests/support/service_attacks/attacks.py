"""Attacks as `attacks.yaml` holds them, and the requests that they are."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlencode

import yaml

from support.service_backend import PROBLEM

SECRET: Final = "SECRET"
"""Stands for the path of a file that no answer may show."""
TOKEN: Final = "TOKEN"
"""Stands for the token of somebody who may have kernels run."""
DEVICE: Final = "DEVICE-ID"
"""Stands for the device that is asked."""
_FORM: Final[Mapping[str, str]] = {
    "code": str(PROBLEM["code"]), "kernel": "fill", "global_size": "64", "local_size": "16",
    "args": "buffer: float32, count: 64", "sampling": "auto",
}  # fmt: skip
_JSON, _URLENCODED = "application/json", "application/x-www-form-urlencoded"
_ORIGIN: Final = "http://127.0.0.1"
_ESTIMATES: Final = "/v1/estimates"
ON_DEVICES: Final = "devices"
"""Part whose attacks need a real device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A request that means harm."""

    part: str
    """Where the harm is: ``source``, ``options``, ``problem``, ``yaml``, ``json``, ``http``,
    ``pages``, ``devices``."""
    name: str
    """What it tries."""
    method: str = "POST"
    path: str = _ESTIMATES
    """Where it is sent, by the method."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Beside the token."""
    body: str = ""
    """What is sent; may hold `SECRET` and `TOKEN`."""
    encoding: str = "utf-8"
    is_chunked: bool = False
    """Whether it comes in pieces without a length."""
    by_cookie: bool = False
    """Whether the token is in a cookie."""
    caller: str = "runner"
    """``runner``, ``reader``, ``admin`` or ``nobody``."""
    status: int
    code: str
    """Of the error that it must get; empty where any will do."""
    shows: str = ""
    """What the answer must hold."""

    @property
    def on_devices(self) -> bool:
        """Whether it is aimed at compilers: then it is tried on real devices."""
        return self.part in {ON_DEVICES, "source", "options"}

    @property
    def id(self) -> str:
        """What tests call it."""
        return f"{self.part}: {self.name}"


@cache
def list_attacks() -> tuple[Attack, ...]:
    """Read all attacks."""
    text = (files(__package__) / "attacks.yaml").read_text(encoding="utf-8")
    return tuple(
        _read(part, entry) for part, entries in yaml.safe_load(text).items() for entry in entries
    )


def _read(part: str, entry: Mapping[str, Any]) -> Attack:
    held = {name: _lengthen(value) for name, value in entry.items()}
    status, _, code = str(held["gets"]).partition(" ")
    kind, body = _write_body(part, held)
    headers = {"content-type": kind} if kind else {}
    if kind == _URLENCODED and not held.get("by_cookie", False):
        headers["origin"] = _ORIGIN  # as a browser sends it
    path = "/lab/estimate" if part == "yaml" else _ESTIMATES
    names = ("name", "method", "path", "encoding", "is_chunked", "by_cookie", "caller", "shows")
    given = {"path": path, **{name: held[name] for name in names if name in held}}
    headers |= held.get("headers", {})
    return Attack(part=part, headers=headers, body=body, status=int(status), code=code, **given)


def _write_body(part: str, held: Mapping[str, Any]) -> tuple[str, str]:
    """Give the type and the text of a body."""
    match part:
        case "source" | "options" | "devices":
            change = {"code": held.get("code", PROBLEM["code"])}
            return _JSON, _write_problem({**change, "build_options": held.get("options", [])})
        case "problem":
            return _JSON, _write_problem(held["change"])
        case "yaml":
            return _URLENCODED, urlencode({**_FORM, "args": held["args"]})
        case "pages":
            text = held.get("form_text") or urlencode(held.get("form", {}))
            return (_URLENCODED, text) if held.get("method", "POST") == "POST" else ("", "")
    text = held.get("body", "").replace("PROBLEM", json.dumps(PROBLEM))
    return (_JSON, text) if text else ("", "")


def _write_problem(change: Mapping[str, Any]) -> str:
    return json.dumps({"problem": {**PROBLEM, **change}, "devices": [DEVICE]})


def _lengthen(value: Any) -> Any:  # noqa: ANN401 - plain values
    """Write out texts that are repeated."""
    match value:
        case {"repeat": str() as text, "times": int() as times}:
            return text * times
        case dict():
            return {name: _lengthen(one) for name, one in value.items()}
        case list():
            return [_lengthen(one) for one in value]
    return value
