"""The client."""

import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import httpx
import yaml

from kernelcast.client.answers import Device, EstimateAnswer, Job, Model, StoredRows
from kernelcast.client.errors import ConnectionFailedError, ServiceError
from kernelcast.client.identity import ServiceIdentity
from kernelcast.client.transport import Patience, Transport
from kernelcast.records.errors import ProblemFileError

DEFAULT_URL: Final = "http://127.0.0.1:8372"
TOKEN_VARIABLE: Final = "KERNELCAST_TOKEN"
"""Environment variable that holds the token where none is given."""

Problem = Mapping[str, Any] | str
"""The keys of a problem file with the source as `code`, or the digest of a problem sent before."""


class Client:
    """Asks a predictor service.

    Parameters
    ----------
    url : str
        Of the service.
    token : str, optional
        Where the service needs one; what `TOKEN_VARIABLE` holds when left out.
    patience : Patience, optional
        Timeouts, and how often a request is sent again when the service is busy or away.
    transport : httpx.BaseTransport, optional
        For tests.

    Notes
    -----
    Threads share one client. Close it, or use it as a context manager. Another instance at the same
    address, as after a restart, is a warning in the log ``kernelcast.client``.

    Examples
    --------
    >>> with Client() as client:  # doctest: +SKIP
    ...     answers = client.estimate(read_problem_file("examples/triad.yaml"))
    ...     fastest = min(answers, key=lambda one: one.seconds)
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        known = token or os.environ.get(TOKEN_VARIABLE) or None
        self._transport = Transport(url, known, patience or Patience(), transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def identify(self) -> ServiceIdentity:
        """Ask which service answers; every other method does so before its first request.

        Raises
        ------
        WrongServiceError
            If something else answers, or it speaks another API.
        ConnectionFailedError
            If nobody answers.
        """
        return self._transport.identify()

    def devices(self) -> tuple[Device, ...]:
        """Describe the devices of the service's host.

        Raises
        ------
        ServiceError, ConnectionFailedError, WrongServiceError
            As every method.
        """
        return tuple(map(Device.read, self._get("/v1/devices")["devices"]))

    def send_problem(self, problem: Mapping[str, Any]) -> str:
        """Send a problem once; give the digest that names it from then on."""
        digest: str = self._post("/v1/problems", dict(problem))["problem_digest"]
        return digest

    def estimate(
        self,
        problem: Problem,
        *,
        devices: Sequence[str] = (),
        **options: Any,  # noqa: ANN401
    ) -> list[EstimateAnswer]:
        """Predict one problem.

        Parameters
        ----------
        problem : mapping or str
            The problem, or its digest.
        devices : sequence of str
            Ids or their beginnings; all devices when left out.
        **options
            ``budget``, ``coverage``, ``seed``, ``sampling`` (``auto`` or ``never``), ``history``,
            ``within_seconds``.

        Returns
        -------
        list of EstimateAnswer
            One per device; a device that cannot answer says so in `EstimateAnswer.error`.

        Raises
        ------
        ServiceError
            If no device can answer, or the request is refused.
        """
        return self.estimate_many([problem], devices=devices, **options)

    def estimate_many(
        self,
        problems: Sequence[Problem],
        *,
        devices: Sequence[str] = (),
        **options: Any,  # noqa: ANN401
    ) -> list[EstimateAnswer]:
        """Predict several problems; answers are devices within problems."""
        asked = {"problems": [_refer(one) for one in problems], "devices": list(devices), **options}
        return [EstimateAnswer.read(one) for one in self._post("/v1/estimates", asked)["estimates"]]

    def observe(self, observations: Sequence[Mapping[str, Any]]) -> StoredRows:
        """Tell how long launches have really taken; they are stored when this returns.

        Parameters
        ----------
        observations : sequence of mapping
            Each with ``problem`` or ``problem_digest``, ``device`` and ``seconds``. One without
            a ``key`` gets one, so that a batch that is sent again is not stored twice.
        """
        keyed = [{"key": uuid.uuid4().hex, **one} for one in observations]
        found = self._post("/v1/observations", {"observations": keyed})
        return StoredRows.read(found)

    def models(self) -> tuple[Model, ...]:
        """List learned models."""
        return tuple(map(Model.read, self._get("/v1/models")["models"]))

    def model_report(self, name: str, version: str | None = None) -> Mapping[str, Any]:
        """Say what a model has learned from and how good it was found to be."""
        params = None if version is None else {"version": version}
        found: Mapping[str, Any] = self._transport.ask(
            "GET", f"/v1/models/{name}/report", params=params
        )
        return found

    def activate_model(self, name: str, version: str | None) -> Model:
        """Use a version whatever is trained later; None uses the latest again."""
        return Model.read(self._post(f"/v1/models/{name}/activate", {"version": version}))

    def roll_back_model(self, name: str) -> Model:
        """Make the version before the latest the latest."""
        return Model.read(self._post(f"/v1/models/{name}/rollback", None))

    def start_job(
        self, kind: str, options: Mapping[str, Any] | None = None, *, key: str | None = None
    ) -> Job:
        """Start a job.

        Parameters
        ----------
        kind : str
            ``collect``, ``calibrate``, ``train``, ``validate`` or ``compare``.
        options : mapping, optional
            See the description of the API.
        key : str, optional
            A second request with it starts nothing; given one of its own when left out.
        """
        asked = {"kind": kind, "options": dict(options or {})}
        headers = {"idempotency-key": key or uuid.uuid4().hex}
        return Job.read(self._transport.ask("POST", "/v1/jobs", content=asked, headers=headers))

    def jobs(self, *, kind: str | None = None, state: str | None = None) -> tuple[Job, ...]:
        """List jobs, newest first."""
        asked = {name: one for name, one in (("kind", kind), ("state", state)) if one is not None}
        found = self._transport.ask("GET", "/v1/jobs", params=asked)
        return tuple(map(Job.read, found["jobs"]))

    def job(self, job_id: str) -> Job:
        """Show where a job stands."""
        return Job.read(self._get(f"/v1/jobs/{job_id}"))

    def job_result(self, job_id: str) -> Any:  # noqa: ANN401 - depends on the kind
        """Give what a job has come to, as plain values."""
        return self._get(f"/v1/jobs/{job_id}/result")["result"]

    def cancel_job(self, job_id: str) -> Job:
        """Have a job end; what it has measured stays."""
        return Job.read(self._post(f"/v1/jobs/{job_id}/cancel", None))

    def follow_job(self, job_id: str) -> Iterator[Job]:
        """Give a job whenever it changes, until it ends; also when the service starts anew."""
        while True:
            try:
                for job in self._listen(job_id):
                    yield job
                    if job.is_over:
                        return
            except ConnectionFailedError:
                pass
            self._get(f"/v1/jobs/{job_id}")  # waits for the service, and gives up in the end

    def _listen(self, job_id: str) -> Iterator[Job]:
        with self._transport.stream(f"/v1/jobs/{job_id}/events") as lines:
            event = ""
            for line in lines:
                name, _, content = line.partition(": ")
                if name == "event":
                    event = content
                elif name == "data" and event == "error":
                    told = json.loads(content)["error"]
                    raise ServiceError(503, told["code"], told["message"], told["detail"])
                elif name == "data":
                    yield Job.read(json.loads(content))

    def _get(self, path: str) -> Any:  # noqa: ANN401 - JSON
        return self._transport.ask("GET", path)

    def _post(self, path: str, content: Any) -> Any:  # noqa: ANN401 - JSON
        return self._transport.ask("POST", path, content=content)


def _refer(problem: Problem) -> dict[str, Any]:
    """Name a problem by itself or by its digest."""
    if isinstance(problem, str):
        return {"problem_digest": problem}
    return {"problem": dict(problem)}


def read_problem_file(path: str | Path) -> dict[str, Any]:
    """Read a problem file into what the service takes.

    Parameters
    ----------
    path : str or Path
        The YAML file; the source that it names is read too.

    Returns
    -------
    dict
        With `code` instead of `source`, and the file's stem as `name`.

    Raises
    ------
    ProblemFileError
        If a file cannot be read. Contents of buffers that come from files are the service's to
        refuse.
    """
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            msg = f"{path}: expected `key: value` pairs"
            raise ProblemFileError(msg)
        source = content.pop("source", None)
        if source is not None:
            content["code"] = (path.parent / str(source)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        msg = f"{path}: cannot be read: {error}"
        raise ProblemFileError(msg) from error
    return {"name": path.stem, **content}
