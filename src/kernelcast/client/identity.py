"""Which service a client speaks with."""

from dataclasses import dataclass
from typing import Any, Final, Self

import cattrs

from kernelcast.client.errors import WrongServiceError

INSTANCE_HEADER: Final = "x-kernelcast-instance"
"""Names the instance in answers."""
_CONVERTER: Final = cattrs.Converter(detailed_validation=False)
_API: Final = "1"
"""First part of the API's versions that this client speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceIdentity:
    """What a service says of itself."""

    instance: str
    """Drawn when the service starts."""
    version: str
    """Of kernelcast."""
    api: str
    """Version of its API."""
    started_at: str
    """In ISO 8601, UTC."""
    pid: int
    """Of the process that was started, on the service's host."""

    @classmethod
    def read(cls, url: str, content: Any) -> Self:  # noqa: ANN401 - whoever answers says anything
        """Read what answers at a service's address.

        Raises
        ------
        WrongServiceError
            If it is no kernelcast service, or speaks another API.
        """
        told = content if isinstance(content, dict) else {}
        try:
            found = _CONVERTER.structure(told, cls)
        except (KeyError, TypeError, ValueError):
            found = None
        if found is None or told.get("service") != "kernelcast":
            msg = (
                f"service {url}: what answers at /health is no kernelcast service, or an older one "
                "that does not say so; give the address of `kernelcast serve`"
            )
            raise WrongServiceError(msg)
        if found.api.partition(".")[0] != _API:
            msg = (
                f"service {url}: kernelcast {found.version} speaks version {found.api} of the API, "
                f"this client {_API}.x; install the same version of both"
            )
            raise WrongServiceError(msg)
        return found
