"""A client of the predictor service: `kernelcast serve` on this or another machine."""

from kernelcast.client.answers import (
    Device,
    EstimateAnswer,
    Job,
    Machine,
    Model,
    StoredAnswer,
    StoredObservation,
    StoredRows,
)
from kernelcast.client.client import AsyncClient, Client, read_problem_file
from kernelcast.client.errors import ConnectionFailedError, ServiceError, WrongServiceError
from kernelcast.client.transport import Patience, ServiceIdentity

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
