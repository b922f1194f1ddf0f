"""What goes wrong between a client and the service."""

from typing import Any

from kernelcast.records.errors import KernelcastError


class ServiceError(KernelcastError):
    """Is raised when the service refuses a request or cannot answer it.

    Parameters
    ----------
    status : int
        HTTP status.
    code : str
        For programs, such as ``unknown_device``.
    message : str
        For people.
    detail : object
        Plain values that depend on the code.
    request_id : str
        Names the request in the service's log.
    """

    def __init__(
        self, status: int, code: str, message: str, detail: object = None, request_id: str = ""
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status = status
        self.code = code
        self.detail = detail
        self.request_id = request_id

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.code, str(self), self.detail, self.request_id)


class ConnectionFailedError(KernelcastError):
    """Is raised when nobody answers at the service's address, or not in time."""


class WrongServiceError(KernelcastError):
    """Is raised when something else answers at the address, or speaks another API."""
