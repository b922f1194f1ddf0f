"""A service in a forked process, and what one asks of it."""

import contextlib
import http.client
import json
import os
import signal
import time
from pathlib import Path
from typing import Any, Final

from kernelcast.service import ServiceSettings, create_app, process
from kernelcast.testing.service_backend import FakeBackend
from kernelcast.testing.service_process import find_port
from kernelcast.testing.store_survival.forking import Forked

_START_S: Final = 60.0
_TIMEOUT_S: Final = 60.0
_APPS: Final[dict[str, Any]] = {}


class ForkedService:
    """The service over a data folder; everything but the devices is as `kernelcast serve` has it.

    Parameters
    ----------
    data : Path
        Its data folder, and the folder that it works in.
    database : str
        The store, seen from there.
    """

    def __init__(self, data: Path, database: str) -> None:
        self._data = data
        self._app = _make_app(database)
        self._port = find_port()
        self._process: Forked | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._process = Forked(self._serve, self._data / "service.log")
        ends_s = time.monotonic() + _START_S
        while time.monotonic() < ends_s and self._process.is_running():
            if self.ask("GET", "/health")[0] == http.client.OK:
                return
            time.sleep(0.005)
        text = (self._data / "service.log").read_text(encoding="utf-8")
        msg = f"the service does not answer; it wrote: {text[-2000:]}"
        raise AssertionError(msg)

    def kill(self) -> None:
        """Kill it by SIGKILL."""
        if self._process is not None:
            self._process.kill()

    def stop(self) -> int | None:
        """End it in order; give its exit status."""
        if self._process is None:
            return None
        self._process.send(signal.SIGTERM)
        return self._process.wait(_TIMEOUT_S)

    def ask(self, method: str, path: str, content: object = None) -> tuple[int, Any]:
        """Ask something.

        Returns
        -------
        status : int
            Of HTTP; 0 where there was no answer.
        content : object
            Of JSON; None for pages.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT_S)
        headers = {"content-type": "application/json", "accept": "text/html, application/json"}
        body = None if content is None else json.dumps(content)
        with contextlib.closing(connection):
            try:
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException):
                return 0, None
        is_json = answer.headers.get_content_type() == "application/json"
        return answer.status, json.loads(text) if is_json else None

    def _serve(self) -> None:
        be_user(self._data)
        process.make_app = lambda: self._app
        process.serve(ServiceSettings(port=self._port))


def be_user(data: Path) -> None:
    """Use a data folder of its own, as a program started there would."""
    os.environ["KERNELCAST_DATA"] = str(data)
    for name in ("KERNELCAST_STORE", "KERNELCAST_MODELS"):
        os.environ.pop(name, None)
    os.chdir(data)


def _make_app(database: str) -> Any:  # noqa: ANN401 - FastAPI is spoken in the service only
    """Make the application once; nothing of it is opened before it runs."""
    if database not in _APPS:
        settings = ServiceSettings(database=database)
        _APPS[database] = create_app(settings, backend=FakeBackend(database))
    return _APPS[database]
