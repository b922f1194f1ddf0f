"""A client of the predictor service: `kernelcast serve` on this or another machine.

Requests that coroutines await, and the same requests for programs that wait.
"""
# ruff: noqa: ANN401 - what is asked and answered is JSON, options are those of httpx

import base64
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar, cast

import httpx
import numpy as np
import yaml

from kernelcast.client.exchange import HEALTH, Transport, read_error, wait_for
from kernelcast.client.exchange import ConnectionFailedError as ConnectionFailedError
from kernelcast.client.exchange import Device as Device
from kernelcast.client.exchange import EstimateAnswer as EstimateAnswer
from kernelcast.client.exchange import Job as Job
from kernelcast.client.exchange import Machine as Machine
from kernelcast.client.exchange import Model as Model
from kernelcast.client.exchange import Patience as Patience
from kernelcast.client.exchange import ServiceError as ServiceError
from kernelcast.client.exchange import StoredAnswer as StoredAnswer
from kernelcast.client.exchange import StoredObservation as StoredObservation
from kernelcast.client.exchange import StoredRows as StoredRows
from kernelcast.client.exchange import WrongServiceError as WrongServiceError
from kernelcast.records.errors import ProblemFileError
from kernelcast.records.frames import Frame, make_frame
from kernelcast.records.service_state import ServiceIdentity as ServiceIdentity

_KEYS: Final = {"week": "week", "device": "device_id", "kernel": "kernel", "tier": "tier"}

Problem = Mapping[str, Any] | str
"""The keys of a problem file with the source as `code`, or the digest of a problem sent before."""

P = ParamSpec("P")
T = TypeVar("T")


class AsyncClient(Transport):
    """Asks a predictor service from coroutines.

    Parameters
    ----------
    url : str
        Of the service.
    token : str, optional
        Where the service needs one; what `TOKEN_VARIABLE` holds when left out.
    patience : Patience, optional
        Timeouts, and how often a request is sent again when the service is busy or away.
    transport : httpx.AsyncBaseTransport, optional
        For tests.

    Notes
    -----
    Coroutines of one loop share one client. Close it, or use it as a context manager. Another
    instance at the same address, as after a restart, is a warning in the log
    ``kernelcast.client``.

    Examples
    --------
    >>> async def ask() -> list[EstimateAnswer]:
    ...     async with AsyncClient() as client:
    ...         problem = read_problem_file("examples/triad.yaml")
    ...         return await client.estimate(problem)
    """

    _kind = httpx.AsyncClient

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await wait_for(self._http.aclose() if self._is_async else self._http.close())

    async def identify(self) -> ServiceIdentity:
        """Ask which service answers; every other method does so before its first request.

        Raises
        ------
        WrongServiceError
            If something else answers, or it speaks another API.
        ConnectionFailedError
            If nobody answers.
        """
        self._is_checked = False
        answer = await self._send("GET", HEALTH)
        if not answer.is_success:
            raise read_error(answer)
        return self._take_identity(answer)

    async def devices(self) -> tuple[Device, ...]:
        """Describe the devices of the service's host.

        Raises
        ------
        ServiceError, ConnectionFailedError, WrongServiceError
            As every method.
        """
        return await self._list(Device, "/v1/devices")

    async def machines(self) -> tuple[Machine, ...]:
        """List machine descriptions: of devices that were calibrated, and those shipped."""
        return await self._list(Machine, "/v1/machines")

    async def machine(self, name: str) -> Mapping[str, Any]:
        """Give a machine description, as its YAML file has it."""
        found: Mapping[str, Any] = (await self._ask("GET", f"/v1/machines/{name}"))["machine"]
        return found

    async def send_problem(self, problem: Mapping[str, Any]) -> str:
        """Send a problem once; give the digest that names it from then on."""
        sent = await self._ask("POST", "/v1/problems", dict(problem))
        return str(sent["problem_digest"])

    async def estimate(
        self, /, problem: Problem, *, devices: Sequence[str] = (), **options: Any
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
        return await AsyncClient.estimate_many(self, [problem], devices=devices, **options)

    async def estimate_many(
        self, /, problems: Sequence[Problem], *, devices: Sequence[str] = (), **options: Any
    ) -> list[EstimateAnswer]:
        """Predict several problems; answers are devices within problems."""
        named = [
            {"problem_digest": one} if isinstance(one, str) else {"problem": dict(one)}
            for one in problems
        ]
        asked = {"problems": named, "devices": list(devices), **options}
        found = await self._ask("POST", "/v1/estimates", asked)
        return [EstimateAnswer.read(one) for one in found["estimates"]]

    async def observe(self, observations: Sequence[Mapping[str, Any]]) -> StoredRows:
        """Tell how long launches have really taken; they are stored when this returns.

        Parameters
        ----------
        observations : sequence of mapping
            Each with ``problem`` or ``problem_digest``, ``device`` and ``seconds``. One without
            a ``key`` gets one, so that a batch that is sent again is not stored twice.
        """
        keyed = [{"key": uuid.uuid4().hex, **one} for one in observations]
        return StoredRows.read(await self._ask("POST", "/v1/observations", {"observations": keyed}))

    async def observations(
        self, /, *, most: int = 100, **wanted: Any
    ) -> tuple[StoredObservation, ...]:
        """List observations.

        Parameters
        ----------
        most : int
            How many at most.
        **wanted
            Which: ``key``, ``measurement``, ``kernel``, ``device``, ``launch``, ``origin``,
            ``flag`` (each one value or several), ``measured_from``, ``measured_before``,
            ``least_seconds``, ``most_seconds``; all where nothing is said.
        """
        return await self._list(StoredObservation, "/v1/observations", most=most, **wanted)

    async def remove_observations(self, /, *, dry_run: bool = False, **wanted: Any) -> int:
        """Remove observations, which are chosen as `observations` chooses; give how many.

        Parameters
        ----------
        dry_run : bool
            Whether to count them only.
        **wanted
            Which; at least one parameter.
        """
        asked = {"most": 0, "dry_run": dry_run, **wanted}
        found = await self._ask("DELETE", "/v1/observations", **asked)
        return int(found["count" if dry_run else "removed"])

    async def remove_observation(self, key: str) -> StoredObservation:
        """Remove one observation by its key in the store; give what it was."""
        found = await self._ask("DELETE", f"/v1/observations/{key}")
        return StoredObservation.read(found["observations"][0])

    async def correct_observation(self, /, key: str, **changes: Any) -> StoredObservation:
        """Correct one observation by its key in the store; its launch stays.

        Parameters
        ----------
        key : str
            Of the observation.
        **changes
            ``seconds`` or ``durations_seconds``, ``measured_at`` (ISO 8601 with its time zone),
            ``is_first_launch``, ``is_contaminated``, ``is_doubted``.
        """
        return StoredObservation.read(await self._ask("PATCH", f"/v1/observations/{key}", changes))

    async def answers(self, /, *, most: int = 100, **wanted: Any) -> tuple[StoredAnswer, ...]:
        """List answers that the service has given, newest first, with what was observed then.

        Parameters
        ----------
        most : int
            How many at most.
        **wanted
            Which: ``kernel``, ``device``, ``tier`` (each one value or several), ``observed``,
            ``given_from``, ``given_before``; all where nothing is said.
        """
        found: list[StoredAnswer] = []
        asked: dict[str, Any] = dict(wanted)
        while len(found) < most:
            asked["limit"] = min(most - len(found), 1000)
            part = await self._ask("GET", "/v1/answers", **asked)
            found += map(StoredAnswer.read, part["answers"])
            if part["next"] is None:
                break
            asked["next"] = part["next"]
        return tuple(found)

    async def answers_frame(self, /, *, most: int = 10_000, **wanted: Any) -> Frame:
        """List the same as a DataFrame: a row for each answer."""
        found = await AsyncClient.answers(self, most=most, **wanted)
        return make_frame(one.content for one in found)

    async def accuracy(self, /, *by: str, **wanted: Any) -> Frame:
        """Tell how good answers were, as a DataFrame.

        Parameters
        ----------
        *by
            What has a row each: ``device`` (alone when left out), ``kernel``, ``tier``, ``week``.
        **wanted
            Which answers, as `answers`; of `given_from` the week counts.

        Returns
        -------
        DataFrame
            With ``asked``, ``made``, ``observed``, mean ``error``, ``ratio``, ``coverage``,
            ``cost_s`` and ``cost_share``.
        """
        keys = list(by) or ["device"]
        found = (await self._ask("GET", "/v1/accuracy", by=keys, **wanted))["rows"]
        left_out = {one for key, one in _KEYS.items() if key not in keys}
        return make_frame(
            {name: one for name, one in row.items() if name not in left_out} for row in found
        )

    async def models(self) -> tuple[Model, ...]:
        """List learned models."""
        return await self._list(Model, "/v1/models")

    async def model_report(self, name: str, version: str | None = None) -> Mapping[str, Any]:
        """Say what a model has learned from and how good it was found to be."""
        params = {} if version is None else {"version": version}
        found: Mapping[str, Any] = await self._ask("GET", f"/v1/models/{name}/report", **params)
        return found

    async def activate_model(self, name: str, version: str | None) -> Model:
        """Use a version whatever is trained later; None uses the latest again."""
        asked = {"version": version}
        return Model.read(await self._ask("POST", f"/v1/models/{name}/activate", asked))

    async def roll_back_model(self, name: str) -> Model:
        """Make the version before the latest the latest."""
        return Model.read(await self._ask("POST", f"/v1/models/{name}/rollback"))

    async def start_job(
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
        return Job.read(await self._ask("POST", "/v1/jobs", asked, key or uuid.uuid4().hex))

    async def compare(
        self, /, first: str, second: str, *, key: str | None = None, **options: Any
    ) -> Job:
        """Start a job that compares two models on what neither has seen.

        Parameters
        ----------
        first, second : str
            Names of models.
        key : str, optional
            As of `start_job`.
        **options
            ``devices``, ``split``, ``shortest_seconds``, ``least_work_groups``, ``resamples``.
        """
        asked = {"first": first, "second": second, **options}
        return Job.read(await self._ask("POST", "/v1/comparisons", asked, key or uuid.uuid4().hex))

    async def comparisons(self) -> tuple[Job, ...]:
        """List comparisons, newest first."""
        return await self._list(Job, "/v1/comparisons", "jobs")

    async def jobs(self, *, kind: str | None = None, state: str | None = None) -> tuple[Job, ...]:
        """List jobs, newest first."""
        asked = {name: one for name, one in (("kind", kind), ("state", state)) if one is not None}
        return await self._list(Job, "/v1/jobs", **asked)

    async def job(self, job_id: str) -> Job:
        """Show where a job stands."""
        return Job.read(await self._ask("GET", f"/v1/jobs/{job_id}"))

    async def job_result(self, job_id: str) -> Any:
        """Give what a job has come to, as plain values."""
        return (await self._ask("GET", f"/v1/jobs/{job_id}/result"))["result"]

    async def cancel_job(self, job_id: str) -> Job:
        """Have a job end; what it has measured stays."""
        return Job.read(await self._ask("POST", f"/v1/jobs/{job_id}/cancel"))

    async def follow_job(self, job_id: str) -> AsyncIterator[Job]:
        """Give a job whenever it changes, until it ends; also when the service starts anew."""
        revision = None
        while True:
            job = await AsyncClient.job(self, job_id)
            if job.content["revision"] != revision:
                revision = job.content["revision"]
                yield job
            if job.is_over:
                return
            await self._sleep(1.0)


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine whose requests block: it ends without having waited for anything."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return cast("T", ended.value)
    coroutine.close()
    raise AssertionError("a request that blocks has waited")


def _blocking(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Client", P], T]:
    @wraps(method)
    def ask(self: "Client", /, *args: P.args, **options: P.kwargs) -> T:
        return _run(method(cast("AsyncClient", self), *args, **options))

    return ask


def _iterating(
    method: Callable[Concatenate[AsyncClient, P], AsyncIterator[T]],
) -> Callable[Concatenate["Client", P], Iterator[T]]:
    @wraps(method)
    def ask(self: "Client", /, *args: P.args, **options: P.kwargs) -> Iterator[T]:
        answers: Any = method(cast("AsyncClient", self), *args, **options)
        try:
            while True:
                yield _run(anext(answers))
        except StopAsyncIteration:
            return
        finally:
            _run(answers.aclose())

    return ask


class Client(Transport):
    """Asks a predictor service: the methods of `AsyncClient`, which return when answers are there.

    Threads share one; parameters and notes are as there.

    Examples
    --------
    >>> with Client() as client:  # doctest: +SKIP
    ...     answers = client.estimate(read_problem_file("examples/triad.yaml"))
    ...     fastest = min(answers, key=lambda one: one.seconds)
    """

    _kind = httpx.Client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    close = _blocking(AsyncClient.close)
    identify = _blocking(AsyncClient.identify)
    devices = _blocking(AsyncClient.devices)
    machines = _blocking(AsyncClient.machines)
    machine = _blocking(AsyncClient.machine)
    send_problem = _blocking(AsyncClient.send_problem)
    estimate = _blocking(AsyncClient.estimate)
    estimate_many = _blocking(AsyncClient.estimate_many)
    observe = _blocking(AsyncClient.observe)
    observations = _blocking(AsyncClient.observations)
    remove_observations = _blocking(AsyncClient.remove_observations)
    remove_observation = _blocking(AsyncClient.remove_observation)
    correct_observation = _blocking(AsyncClient.correct_observation)
    answers = _blocking(AsyncClient.answers)
    answers_frame = _blocking(AsyncClient.answers_frame)
    accuracy = _blocking(AsyncClient.accuracy)
    models = _blocking(AsyncClient.models)
    model_report = _blocking(AsyncClient.model_report)
    activate_model = _blocking(AsyncClient.activate_model)
    roll_back_model = _blocking(AsyncClient.roll_back_model)
    start_job = _blocking(AsyncClient.start_job)
    compare = _blocking(AsyncClient.compare)
    comparisons = _blocking(AsyncClient.comparisons)
    jobs = _blocking(AsyncClient.jobs)
    job = _blocking(AsyncClient.job)
    job_result = _blocking(AsyncClient.job_result)
    cancel_job = _blocking(AsyncClient.cancel_job)
    follow_job = _iterating(AsyncClient.follow_job)


def read_problem_file(path: str | Path) -> dict[str, Any]:
    """Read a problem file into what the service takes.

    Parameters
    ----------
    path : str or Path
        The YAML file; the source that it names is read too.

    Returns
    -------
    dict
        With `code` instead of `source`, contents instead of .npy files, the file's stem as `name`.

    Raises
    ------
    ProblemFileError
        If a file cannot be read.
    """
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ProblemFileError(f"{path}: expected `key: value` pairs")
        source = content.pop("source", None)
        names = source if isinstance(source, list) else [] if source is None else [source]
        if names:
            texts = [(path.parent / str(one)).read_text(encoding="utf-8") for one in names]
            content["code"] = "\n".join(texts)
        for argument in content.get("args") or ():
            init = argument.get("init") if isinstance(argument, dict) else None
            if isinstance(init, str) and init.endswith(".npy"):
                values = np.load(path.parent / init, allow_pickle=False).tobytes()
                argument["init"] = {"base64": base64.b64encode(values).decode()}
    except (OSError, ValueError, EOFError, yaml.YAMLError) as error:
        raise ProblemFileError(f"{path}: cannot be read: {error}") from error
    return {"name": path.stem, **content}
