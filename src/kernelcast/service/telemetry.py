"""What operators are told: lines of JSON in the log, counts for Prometheus."""

import json
import logging
import os
import platform
import resource
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from kernelcast.records.private_files import make_private_folder

LOGGER = logging.getLogger("kernelcast.service")
_FIELDS: Final = "fields"
_COUNTS_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client's own
_REQUEST_BOUNDS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 30, 120)
_ESTIMATE_BOUNDS_S = (0.0001, 0.0005, 0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120)
_WAIT_BOUNDS_S = (0.01, 0.1, 0.5, 1, 2, 5, 10, 20, 30, 60)
_ERROR_BOUNDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        content: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info:
            content["traceback"] = self.formatException(record.exc_info)
        return json.dumps(content, default=str)


def log(message: str, *, level: int = logging.INFO, **fields: object) -> None:
    """Write a line with fields; no secret may be among them."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, message, extra={_FIELDS: fields})


def set_up_logs(level: str = "info") -> None:
    """Have the service and uvicorn write JSON lines to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("kernelcast", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.propagate = name == "uvicorn.error"
        logger.setLevel(level.upper())


class Metrics:
    """Counts of one process, in a registry of its own: several apps can live side by side."""

    def __init__(self, api_version: str = "") -> None:
        self._registry = CollectorRegistry()
        self._cpu_s = 0.0
        counter = partial(Counter, namespace="kernelcast", registry=self._registry)
        gauge = partial(
            Gauge, namespace="kernelcast", registry=self._registry, multiprocess_mode="livesum"
        )
        histogram = partial(Histogram, namespace="kernelcast", registry=self._registry)
        own = ("device_id",)
        self.requests = counter("http_requests", "Requests", ("method", "route", "status"))
        self.request_s = histogram(
            "http_request_seconds", "Time of requests", ("route",), buckets=_REQUEST_BOUNDS_S
        )
        self.estimate_s = histogram(
            "estimate_seconds", "Time to an answer", ("tier", "kept"), buckets=_ESTIMATE_BOUNDS_S
        )
        self.estimate_errors = counter("estimate_errors", "Answers that failed", ("code", *own))
        self.prediction_error = histogram(
            "prediction_error_ratio", "|predicted - measured| / measured", ("tier", *own),
            buckets=_ERROR_BOUNDS,
        )  # fmt: skip
        self.predictions = counter(
            "predictions", "Answers that were observed, by whether their interval held",
            (*own, "tier", "inside"),
        )  # fmt: skip
        self.drifts = counter("drift", "Launches whose times have shifted", own)
        self.queue_length = gauge("sampling_queue_length", "Samplings waiting or at work", own)
        self.queue_wait_s = histogram(
            "sampling_wait_seconds", "Time until a sampling's turn", own, buckets=_WAIT_BOUNDS_S
        )
        self.device_busy_s = counter(
            "device_busy_seconds", "Time of samplings; its rate is the busy share", own
        )
        self.sampling_refused = counter("sampling_refused", "Samplings refused", own)
        self.worker_restarts = counter(
            "worker_restarts", "Sampling processes replaced", (*own, "reason")
        )
        self.process_starts = counter(
            "process_starts", "Processes of this instance that began to answer"
        )
        self.observations = counter("observations", "Observations taken", ("outcome",))
        self.answers_lost = counter(
            "answers_lost", "Answers not stored, as the database did not take them"
        )
        self.database_failures = counter(
            "database_failures", "Times that the database did not answer", ("where",)
        )
        self.jobs = gauge("jobs", "Jobs by state", ("state",), multiprocess_mode="mostrecent")
        self.refinements = counter("refinements", "Answers sampled again", own)
        self.refining_s = counter("refining_seconds", "Time that took", own)
        # By the names that other programs' processes have.
        self._memory = gauge(
            "resident_memory_bytes", "Memory of all processes", namespace="process"
        )
        self._cpu = counter("cpu_seconds", "Processor time of all processes", namespace="process")
        self._open_files = gauge("open_fds", "Open files of all processes", namespace="process")
        versions = ("version", "api", "python")
        self._build = gauge("build_info", "Versions", versions, multiprocess_mode="max")
        self._build.labels(version("kernelcast"), api_version, platform.python_version()).set(1)

    def watch_request(self, method: str, route: str, status: int, seconds: float) -> None:
        method = method if method in _METHODS else "other"  # callers may invent any number
        self.requests.labels(method, route, status).inc()
        self.request_s.labels(route).observe(seconds)

    def watch_process(self) -> None:
        """Count what this process takes of its machine."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        cpu_s = used.ru_utime + used.ru_stime
        self._cpu.inc(max(cpu_s - self._cpu_s, 0.0))
        self._cpu_s = cpu_s
        with suppress(OSError):  # Linux tells more than others
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            self._memory.set(pages * resource.getpagesize())
            self._open_files.set(len(os.listdir("/proc/self/fd")))  # noqa: PTH208 - names suffice

    def write(self) -> tuple[bytes, str]:
        """Write all counts as Prometheus reads them; give the type of that text as well."""
        self.watch_process()
        if _COUNTS_VARIABLE not in os.environ:
            return generate_latest(self._registry), CONTENT_TYPE_LATEST
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]  # the library has none
        return generate_latest(together), CONTENT_TYPE_LATEST


@contextmanager
def share_counts(folder: Path) -> Iterator[None]:
    """Have processes that start meanwhile put their counts together in a folder of their service.

    It goes at the end; what a service has left there that was killed goes now.
    """
    shutil.rmtree(folder, ignore_errors=True)
    make_private_folder(folder)
    # Read when prometheus_client makes its first number, in each process.
    os.environ[_COUNTS_VARIABLE] = str(folder)
    try:
        yield
    finally:
        del os.environ[_COUNTS_VARIABLE]
        shutil.rmtree(folder, ignore_errors=True)


def forget_ended_processes() -> None:
    """Take numbers of this moment out of the counts where the process that wrote them has ended."""
    folder = os.environ.get(_COUNTS_VARIABLE)
    for path in Path(folder).glob("gauge_live*.db") if folder else ():
        number = path.stem.rpartition("_")[2]
        if number.isdecimal() and not Path(f"/proc/{number}").exists():
            mark_process_dead(int(number))  # type: ignore[no-untyped-call]  # the library has none
