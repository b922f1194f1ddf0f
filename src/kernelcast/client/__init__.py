"""A client of the predictor service: `kernelcast serve` on this or another machine."""

from kernelcast.client.answers import (
    Device,
    EstimateAnswer,
    Job,
    Machine,
    Model,
    StoredObservation,
    StoredRows,
)
from kernelcast.client.client import Client, read_problem_file
from kernelcast.client.errors import ConnectionFailedError, ServiceError, WrongServiceError
from kernelcast.client.identity import ServiceIdentity
from kernelcast.client.transport import Patience

__all__ = [
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
    "StoredObservation",
    "StoredRows",
    "WrongServiceError",
    "read_problem_file",
]
