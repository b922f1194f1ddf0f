"""Names of the counts of changes that processes tell each other by.

Launches are put into a few thousand buckets: an observation makes kept answers of its own bucket be
looked at again, and leaves the others alone.
"""

from functools import lru_cache
from typing import Final

from kernelcast.records.device import DeviceDescription
from kernelcast.records.launch_identity import LaunchIdentity, digest_arguments, digest_text
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.service_state import OBSERVATIONS_CHANGED

EVERYTHING: Final = OBSERVATIONS_CHANGED
"""Any launch may have been observed, or may have lost observations."""
TOKENS: Final = "tokens"
"""Tokens were made or revoked."""
_BUCKET: Final = "observed:"
_LETTERS: Final = 3


def is_bucket(name: str) -> bool:
    """Tell whether a count is of a bucket."""
    return name.startswith(_BUCKET)


def bucket_of_launch(launch: LaunchIdentity) -> str:
    """Give the name of the count that observations of a launch make grow."""
    return _name(
        launch.kernel.digest,
        launch.device.id,
        launch.device.driver,
        launch.ndrange,
        launch.arguments_digest,
    )


def bucket_of_problem(problem: Problem, device: DeviceDescription, *, seed: int) -> str:
    """Give the same for a problem on a device."""
    return _name(
        problem.kernel.digest,
        device.id,
        device.driver,
        problem.ndrange,
        digest_arguments(problem.arguments, seed=seed),
    )


@lru_cache(maxsize=4096)
def _name(kernel: str, device_id: str, driver: str, ndrange: NDRange | None, arguments: str) -> str:
    digest = digest_text(kernel, device_id, driver, repr(ndrange), arguments)
    return _BUCKET + digest[:_LETTERS]
