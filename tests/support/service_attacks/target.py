"""A service that is attacked: whether it kept what it must."""

import contextlib
import json
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from kernelcast.records.service_state import Scope
from kernelcast.service.authentication import make_token
from kernelcast.service_state import open_state
from support.running_service import ServiceProcess
from support.service_attacks.attacks import DEVICE, SECRET, TOKEN, Attack
from support.service_backend import PROBLEM

_CHUNK: Final = 65536
_FUTURE_S: Final = 10**9
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_COOKIE: Final = "kernelcast_token"


class Secret:
    """A file that nobody may read, beside one of an equally long name that is not there."""

    def __init__(self, folder: Path) -> None:
        self.content = secrets.token_hex(12)
        self.path = folder / "secret-a"
        self.missing = folder / "secret-b"
        self.path.write_text(f"{self.content}\n", encoding="utf-8")
        (folder / "secret-a.npy").write_text(self.content, encoding="utf-8")
        # A reading is noted if the last one was before the last change.
        now_s = self.path.stat().st_ctime
        os.utime(self.path, (now_s - _FUTURE_S, now_s + _FUTURE_S))
        self._seen_ns = self.path.stat().st_atime_ns

    def was_read(self) -> bool:
        """Tell whether anybody has read it, where the file system keeps that."""
        return self.path.stat().st_atime_ns != self._seen_ns


@dataclass(frozen=True, slots=True)
class Target:
    """A running service."""

    client: httpx.Client
    tokens: Mapping[str, str]
    secret: Secret
    device: str
    count_runs: Callable[[], int] = lambda: 0

    def attack(self, attack: Attack) -> list[str]:
        """Try an attack; say what the service should not have done, nothing where it stood firm."""
        runs = self.count_runs()
        answer = self._send(attack, self.secret.path)
        faults = list(self._judge(attack, answer))
        if SECRET in attack.path + attack.body:
            other = self._send(attack, self.secret.missing)
            if self._strip(answer) != self._strip(other):
                faults.append("the answer tells whether the file is there")
        if self.secret.was_read():
            faults.append("the file was read")
        ran = self.count_runs() - runs
        if ran and (attack.caller != "runner" or answer.is_error):
            faults.append(f"{ran} kernels were run")
        return [*faults, *self._check_alive()]

    def _judge(self, attack: Attack, answer: httpx.Response) -> Iterator[str]:
        code = ""  # pages have none
        with contextlib.suppress(ValueError, KeyError, TypeError):
            code = json.loads(answer.text)["error"]["code"]
        if answer.status_code != attack.status or (attack.code and code != attack.code):
            yield f"got {answer.status_code} {code}, expected {attack.status} {attack.code}"
        told = answer.text + str(dict(answer.headers))
        if self.secret.content in told:
            yield "the answer shows the file"
        if attack.shows and attack.shows not in answer.text:
            yield f"the answer lacks {attack.shows}"
        if "<script>alert" in answer.text and "html" in answer.headers.get("content-type", ""):
            yield "a script stands in the page"
        if "evil.example" in answer.headers.get("location", ""):
            yield "it leads to another site"
        if "set-cookie" in answer.headers.get("x-request-id", ""):
            yield "a header was taken over"

    def _send(self, attack: Attack, path: Path) -> httpx.Response:
        text = _fill(attack.body, path, self.tokens).replace(DEVICE, self.device)
        body = text.encode(attack.encoding)
        headers = dict(attack.headers)
        if attack.caller != "nobody":
            token = self.tokens[attack.caller]
            if attack.by_cookie:
                headers["cookie"] = f"{_COOKIE}={token}"
            else:
                headers["authorization"] = f"Bearer {token}"
        chunks = (body[place : place + _CHUNK] for place in range(0, len(body), _CHUNK))
        return self.client.request(
            attack.method,
            _fill(attack.path, path, self.tokens),
            content=chunks if attack.is_chunked else body,
            headers=headers,
            follow_redirects=False,
        )

    def _strip(self, answer: httpx.Response) -> tuple[int, str]:
        """Give an answer without what may differ: path sent, digest of it, the request's id."""
        text = _DIGEST.sub("", answer.text)
        for path in (self.secret.path, self.secret.missing):
            for one in (str(path), path.name):
                text = text.replace(one, SECRET)
        return answer.status_code, text.replace(answer.headers.get("x-request-id", SECRET), "")

    def _check_alive(self) -> Iterator[str]:
        """Ask what every service answers."""
        if not self.client.get("/health").is_success:
            yield "the service is not healthy any more"
        headers = {"authorization": f"Bearer {self.tokens['runner']}"}
        asked = {"problem": PROBLEM, "devices": [self.device]}
        answer = self.client.post("/v1/estimates", json=asked, headers=headers)
        if not answer.is_success:
            yield f"the service answers nothing any more: {answer.text[:200]}"


def add_tokens(database: str) -> dict[str, str]:
    """Make the tokens that attacks are tried with."""
    scopes = {"runner": {Scope.ESTIMATE, Scope.RUN}, "reader": {Scope.ESTIMATE}, "admin": {*Scope}}
    tokens = {}
    with open_state(database) as state:
        for name, allowed in scopes.items():
            tokens[name], record = make_token(name, frozenset(allowed))
            state.tokens.add(record)
    return tokens


@contextlib.contextmanager
def serve_targets(folder: Path, devices: Sequence[str]) -> Iterator[list[Target]]:
    """Start a service in a process of its own; list it once for each device it runs kernels on."""
    options = ("--allow-run", "--require-tokens", "--no-jobs", "--refine", "0")
    with (
        ServiceProcess(folder, *options) as service,
        httpx.Client(base_url=service.url, timeout=120) as client,
        make_secret() as secret,
    ):
        tokens = add_tokens(f"{folder}/observations.sqlite")
        yield [Target(client, tokens, secret, device) for device in devices]


@contextlib.contextmanager
def make_secret() -> Iterator[Secret]:
    """Make the file, for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        yield Secret(Path(folder))


def _fill(text: str, path: Path, tokens: Mapping[str, str]) -> str:
    return text.replace(SECRET, str(path)).replace(TOKEN, tokens["runner"])
