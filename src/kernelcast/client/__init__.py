"""A client of the predictor service: `kernelcast serve` on this or another machine."""

from kernelcast.client.answers import (
    Device,
    EstimateAnswer,
    Job,
    Machine,
    Model,
    ServiceError,
    StoredAnswer,
    StoredObservation,
    StoredRows,
)
from kernelcast.client.client import AsyncClient, Client, read_problem_file
from kernelcast.client.transport import (
    ConnectionFailedError,
    Patience,
    ServiceIdentity,
    WrongServiceError,
)

__all__ = [
    "AsyncClient",
    "Client",
    "ConnectionFailedError",
    "Device",
    "EstimateAnswer",
    "Job",
    "Machine",
    "Model",
    "Patience",
    "ServiceError",
    "ServiceIdentity",
    "StoredAnswer",
    "StoredObservation",
    "StoredRows",
    "WrongServiceError",
    "read_problem_file",
]
