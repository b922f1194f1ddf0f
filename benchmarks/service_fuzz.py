"""Throws thousands of requests at a service and counts what should not happen.

``python benchmarks/service_fuzz.py --requests 4000 --schemathesis PATH --examples 60`` starts a
service with fake devices in a folder of its own, under strace, and

1. has schemathesis go through ``docs/reference/openapi.yaml`` (``pip install schemathesis``, best
   in an environment of its own; PATH is its executable);
2. sends spoiled problems, observations, jobs, addresses, forms and broken bodies of
   `fuzz_bodies.py` over several connections.

``--device intel`` takes the host's real devices and allows kernels to be run: every good problem is
then compiled and sampled, which takes its time.

Counted are answers of 5xx other than 503, 503 without Retry-After, errors of another shape,
requests that nobody answers, answers with the content of a file that must not be read, and files
outside the data folder that were opened for writing, or that are the canary. All of these should
be 0. Caches of the service's user, ours and those of OpenCL drivers, and the folder of temporary
files are listed apart.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from fuzz_bodies import CANARY, Request, make_requests
from machine import describe_machine

from kernelcast.testing.service_process import find_port

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results" / "service_fuzz"
_MOST_TOLD = 20
_START_S = 120.0
_CONNECTIONS = 6
# A stream has no end while its job waits: it counts as answered when it begins.
_STREAM = "/events"
_OPENED = re.compile(
    r'(?:open|openat|creat)\((?:[^,"]+, )?"(?P<path>[^"]*)"(?P<rest>[^=]*)= (?P<code>-?\d+)'
)
_CHANGED = re.compile(
    r'(?:unlink|unlinkat|rename|renameat2?|mkdir|mkdirat)\([^"]*"(?P<path>[^"]*)"'
)
_WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
# What every process may open for writing.
_HARMLESS = re.compile(r"/dev/(?:null|tty|shm/|urandom)|/proc/(?:self|\d+|thread-self)/|/sys/")


@dataclass(slots=True)
class Found:
    """What should not have happened.

    Parameters
    ----------
    statuses : Counter
        Answers by status.
    server_errors, without_retry_after, misshapen, unanswered, leaks : list of str
        The requests.
    slowest_s : float
        Longest time to an answer.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    server_errors: list[str] = field(default_factory=list)
    without_retry_after: list[str] = field(default_factory=list)
    misshapen: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    slowest_s: float = 0.0

    def judge(
        self, request: Request, answer: httpx.Response, content: bytes, took_s: float
    ) -> None:
        """Take an answer."""
        told = (
            f"{request.method} {request.path[:100]} {request.body[:400]!r} -> {answer.status_code}"
        )
        self.statuses[answer.status_code] += 1
        self.slowest_s = max(self.slowest_s, took_s)
        if answer.status_code >= 500 and answer.status_code != 503:
            self.server_errors.append(f"{told} {content[:300]!r}")
        if answer.status_code == 503 and "retry-after" not in answer.headers:
            self.without_retry_after.append(told)
        if CANARY.encode() in content:
            self.leaks.append(told)
        if answer.status_code >= 400 and request.path.startswith("/v1/"):
            self._judge_shape(request, content, told)

    def _judge_shape(self, request: Request, content: bytes, told: str) -> None:
        if request.method == "HEAD":
            return
        try:
            is_ours = {*json.loads(content)} == {"error"}
        except ValueError:
            is_ours = False
        if not is_ours:
            self.misshapen.append(f"{told} {content[:200]!r}")


class Service:
    """A service under strace, in a folder of its own.

    Parameters
    ----------
    folder : Path
        Holds everything: data, home, temporary files, log and trace.
    device : str
        ``fake``, or the beginning of a real one's id.
    """

    def __init__(self, folder: Path, device: str) -> None:
        self.folder = folder
        self.log = folder / "service.log"
        self.trace = folder / "trace"
        self.data = folder / "data"
        self.canary = folder / "canary.npy"
        self.canary.write_text(CANARY)
        self.port = find_port()
        for name in ("data", "home", "tmp", "work"):
            (folder / name).mkdir()
        environment = {
            **os.environ, "KERNELCAST_DATA": str(self.data), "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        for name in ("KERNELCAST_STORE", "KERNELCAST_MODELS", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
            environment.pop(name, None)
        command = [
            sys.executable,
            str(Path(__file__)),
            "--serve",
            str(self.port),
            "--device",
            device,
        ]
        if shutil.which("strace"):
            calls = (
                "trace=open,openat,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat"
            )
            command = ["strace", "-f", "--seccomp-bpf", "-qq", "-s", "400", "-e", calls, "-o",
                       str(self.trace), *command]  # fmt: skip
        self._process = subprocess.Popen(
            command, env=environment, cwd=folder / "work", stderr=self.log.open("wb"),
            start_new_session=True,
        )  # fmt: skip

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def wait(self) -> None:
        """Wait until it answers."""
        ends_s = time.monotonic() + _START_S
        while time.monotonic() < ends_s and self._process.poll() is None:
            try:
                if httpx.get(f"{self.url}/ready", timeout=60).is_success:
                    return
            except httpx.TransportError:
                time.sleep(0.2)
        raise AssertionError(self.log.read_text()[-3000:])

    def stop(self) -> None:
        """End it in order, then by force."""
        _end_group(self._process)

    def list_requests(self) -> Iterator[dict[str, Any]]:
        """Give what the log says of requests."""
        for line in self.log.read_text(errors="replace").splitlines():
            try:
                one = json.loads(line)
            except ValueError:
                continue
            if one.get("message") == "request":
                yield one

    def list_failures(self) -> list[str]:
        """Give the tracebacks that the log holds."""
        return [
            line[:2000]
            for line in self.log.read_text(errors="replace").splitlines()
            if '"traceback"' in line
        ]

    def is_cache(self, path: str) -> bool:
        """Tell whether a file is a cache of the service's user, or a temporary one."""
        return "/.cache" in path or path.startswith(f"{self.folder / 'tmp'}")

    def list_touched(self) -> dict[str, int]:
        """Give files outside the data folder that were opened for writing, and the canary."""
        if not self.trace.exists():
            return {"strace is not installed: nothing is known of files": 1}
        found: Counter[str] = Counter()
        for line in self.trace.read_text(errors="replace").splitlines():
            path = self._find_touched(line)
            if path is not None and not self._is_allowed(path):
                found[path] += 1
        return dict(found.most_common(200))

    def _find_touched(self, line: str) -> str | None:
        opened = _OPENED.search(line)
        if opened is not None:
            is_canary = opened["path"] == str(self.canary)
            if int(opened["code"]) < 0 or not (is_canary or _WRITES.search(opened["rest"])):
                return None
            return opened["path"]
        changed = _CHANGED.search(line)
        return changed["path"] if changed is not None and " = 0" in line else None

    def _is_allowed(self, path: str) -> bool:
        whole = path if path.startswith("/") else str(self.folder / "work" / path)
        return whole.startswith(f"{self.data}/") or bool(_HARMLESS.match(whole))


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    import signal

    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(40)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
        return


def throw(service: Service, requests: Sequence[Request], longest_s: float) -> Found:
    """Send requests over several connections at once."""
    found = Found()
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        parts = [requests[place::_CONNECTIONS] for place in range(_CONNECTIONS)]
        list(pool.map(lambda part: _send_all(service, part, found, longest_s), parts))
    return found


def _send_all(
    service: Service, requests: Sequence[Request], found: Found, longest_s: float
) -> None:
    with httpx.Client(base_url=service.url, timeout=longest_s) as client:
        for number, one in enumerate(requests):
            _send(client, one, found)
            if number % 200 == 0:
                print(f"{number} of {len(requests)}: {dict(found.statuses)}", flush=True)


def _send(client: httpx.Client, one: Request, found: Found) -> None:
    headers = {"content-type": one.content_type, "origin": str(client.base_url).rstrip("/")}
    started_s = time.perf_counter()
    try:
        with client.stream(one.method, one.path, content=one.body, headers=headers) as answer:
            is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
            content = b"" if is_stream else answer.read()
    except httpx.InvalidURL:
        return
    except httpx.TransportError as error:
        found.unanswered.append(f"{one.method} {one.path[:100]} {one.body[:400]!r}: {error!r}")
        return
    found.judge(one, answer, content, time.perf_counter() - started_s)


def run_schemathesis(service: Service, executable: str, examples: int) -> dict[str, Any]:
    """Have schemathesis go through the document; give what it says at its end."""
    report = service.folder / "schemathesis.json"
    command = [
        executable, "run", str(ROOT / "docs" / "reference" / "openapi.yaml"), "--url", service.url,
        "--max-examples", str(examples), "--checks", "not_a_server_error", "--continue-on-failure",
        "--request-timeout", "60", "--workers", "1", "--suppress-health-check", "all",
        "--exclude-path-regex", _STREAM, "--seed", "1", "--report", "json", "--report-json-path",
        str(report), "--warnings", "off",
        # With made-up tokens it would see little but 401.
        "--generation-with-security-parameters", "false",
    ]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=service.folder)
    lines = done.stdout.splitlines()
    begins = next(
        (place for place, one in enumerate(lines) if "= ERRORS =" in one), len(lines) - 25
    )
    return {"exit_status": done.returncode, "end": [one.strip() for one in lines[begins:] if one]}


def run(asked: argparse.Namespace) -> dict[str, Any]:
    """Start a service, throw everything at it, and say what has happened."""
    with tempfile.TemporaryDirectory(prefix="kernelcast-fuzz-") as name:
        service = Service(Path(name), asked.device)
        requests = list(
            make_requests(asked.requests, asked.seed, str(service.canary), asked.device)
        )
        try:
            service.wait()
            told: dict[str, Any] = {"machine": describe_machine(), "device": asked.device}
            if asked.schemathesis:
                told["schemathesis"] = run_schemathesis(service, asked.schemathesis, asked.examples)
            by_schemathesis = Counter(one["status"] for one in service.list_requests())
            found = throw(service, requests, asked.longest_seconds)
            is_alive = httpx.get(f"{service.url}/health", timeout=60).is_success
        finally:
            service.stop()
        return told | _describe(service, found, by_schemathesis) | {"is_alive": is_alive}


def _describe(service: Service, found: Found, before: Counter[int]) -> dict[str, Any]:
    requests = list(service.list_requests())
    wrong = [one for one in requests if one["status"] >= 500 and one["status"] != 503]
    touched = service.list_touched()
    lists = {
        "server_errors": found.server_errors, "without_retry_after": found.without_retry_after,
        "misshapen_errors": found.misshapen, "unanswered": found.unanswered, "leaks": found.leaks,
        "server_errors_of_the_log": [json.dumps(one) for one in wrong],
        "tracebacks": service.list_failures(),
        "files_outside": [
            f"{path} ({count})" for path, count in touched.items() if not service.is_cache(path)
        ],
    }  # fmt: skip
    return {
        "requests": len(requests),
        "statuses_of_schemathesis": {str(one): before[one] for one in sorted(before)},
        "statuses_of_spoiled_bodies": {
            str(one): found.statuses[one] for one in sorted(found.statuses)
        },
        "caches_and_temporary_files": sorted(
            {_name_cache(path) for path in touched if service.is_cache(path)}
        ),
        "slowest_seconds": round(found.slowest_s, 3),
        **{f"{name}_count": len(one) for name, one in lists.items()},
        **{name: one[:_MOST_TOLD] for name, one in lists.items()},
    }


def _name_cache(path: str) -> str:
    """Give the kind of a cache or temporary file, not its random name."""
    parts = path.partition("/.cache/")[2].split("/")
    return f".cache/{parts[0]}" if parts[0] else "temporary"


def serve(port: int, device: str) -> None:
    """Serve with fake devices, or with the host's own; in a process of its own."""
    import uvicorn

    from kernelcast.service import ServiceSettings, create_app
    from kernelcast.service.logs import set_up_logs
    from kernelcast.service.process import keep_files_together
    from kernelcast.service.settings import Limits
    from kernelcast.testing.service_backend import FakeBackend

    set_up_logs()
    keep_files_together()
    database = str(Path(os.environ["KERNELCAST_DATA"]) / "observations.sqlite")
    # Wrong tokens are thrown too, and must not shut the door for all that follows.
    limits = Limits(wrong_tokens=1_000_000, sample_seconds=10, wait_seconds=20)
    settings = ServiceSettings(database=database, allow_run=True, runs_jobs=False, limits=limits)
    backend = FakeBackend(database) if device == "fake" else None
    app = create_app(settings, backend=backend)
    uvicorn.run(app, port=port, log_config=None, access_log=False)


def main() -> None:
    """Run and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="fake")
    parser.add_argument("--schemathesis", default="")
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--longest-seconds", type=float, default=120.0)
    parser.add_argument("--name", default="")
    parser.add_argument("--serve", type=int, default=0)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.serve, asked.device)
        return
    result = run(asked)
    RESULTS.mkdir(parents=True, exist_ok=True)
    name = asked.name or asked.device
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({k: v for k, v in result.items() if k != "machine"}, indent=1))


if __name__ == "__main__":
    main()
