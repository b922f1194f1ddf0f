"""What the service counts for Prometheus."""

import os
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

MULTIPROCESS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Folder in which the processes of one service put their counts together."""
_REQUEST_BOUNDS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 30, 120)
_ESTIMATE_BOUNDS_S = (0.0001, 0.0005, 0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_ERROR_BOUNDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5)


class Metrics:
    """Counts of one process; in a registry of its own, so that several apps can live side by side.

    Attributes
    ----------
    requests, request_s
        Requests by method, route and status; their seconds by route.
    estimate_s, estimate_errors
        Seconds of answers by tier and by whether they were kept ones; answers that failed, by code.
    prediction_error
        |predicted - measured| / measured of observed launches that were answered before, by tier.
    drifts
        Launches whose times have shifted, by device.
    queue_length, sampling_refused, worker_restarts
        Samplings that wait or are at work by device, those that were refused, and processes that
        crashed or hung and were replaced.
    observations
        By what became of them.
    jobs
        By state.
    refinements, refining_s
        Answers that were sampled again while nobody waited, and the seconds that took, by device.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        counter = partial(Counter, registry=self._registry)
        gauge = partial(Gauge, registry=self._registry)
        histogram = partial(Histogram, registry=self._registry)
        self.requests = counter(
            "kernelcast_http_requests", "Requests", ("method", "route", "status")
        )
        self.request_s = histogram(
            "kernelcast_http_request_seconds", "Time of requests", ("route",),
            buckets=_REQUEST_BOUNDS_S,
        )  # fmt: skip
        self.estimate_s = histogram(
            "kernelcast_estimate_seconds", "Time to an answer", ("tier", "kept"),
            buckets=_ESTIMATE_BOUNDS_S,
        )  # fmt: skip
        self.estimate_errors = counter(
            "kernelcast_estimate_errors", "Answers that failed", ("code",)
        )
        self.prediction_error = histogram(
            "kernelcast_prediction_error_ratio", "|predicted - measured| / measured", ("tier",),
            buckets=_ERROR_BOUNDS,
        )  # fmt: skip
        by_device = ("device_id",)
        self.drifts = counter("kernelcast_drift", "Launches whose times have shifted", by_device)
        self.queue_length = gauge(
            "kernelcast_sampling_queue_length", "Samplings waiting or at work", by_device,
            multiprocess_mode="livesum",
        )  # fmt: skip
        self.sampling_refused = counter(
            "kernelcast_sampling_refused", "Samplings refused", by_device
        )
        self.worker_restarts = counter(
            "kernelcast_worker_restarts", "Sampling processes replaced", (*by_device, "reason")
        )
        self.observations = counter("kernelcast_observations", "Observations taken", ("outcome",))
        self.jobs = gauge(
            "kernelcast_jobs", "Jobs by state", ("state",), multiprocess_mode="mostrecent"
        )
        self.refinements = counter("kernelcast_refinements", "Answers sampled again", by_device)
        self.refining_s = counter("kernelcast_refining_seconds", "Time that took", by_device)

    def count_refinement(self, device_id: str, seconds: float) -> None:
        """Count an answer that was sampled again."""
        self.refinements.labels(device_id).inc()
        self.refining_s.labels(device_id).inc(seconds)

    def watch_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        method = method if method in _METHODS else "other"  # callers may invent any number
        self.requests.labels(method, route, status).inc()
        self.request_s.labels(route).observe(seconds)

    def write(self) -> tuple[bytes, str]:
        """Give all counts as Prometheus reads them, and the type of that text."""
        if MULTIPROCESS_VARIABLE not in os.environ:
            return generate_latest(self._registry), CONTENT_TYPE_LATEST
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]  # the library has none
        return generate_latest(together), CONTENT_TYPE_LATEST
