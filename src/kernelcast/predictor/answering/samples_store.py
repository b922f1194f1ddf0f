"""Samples of launches in the data folder: the next process that asks for the same has them.

What samples say is a piece of evidence like another, whoever took them; it fades with the time that
has passed since. Contents of buffers are part of a launch's identity, so that another file is
another launch. There is a file for each launch and version of the code: whatever changes gives
another name. What cannot be read is sampled anew, what cannot be written is not kept.
"""

import hashlib
import logging
import time
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from kernelcast.launches.data_folder import data_folder
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.tasks import EstimateOutcome
from kernelcast.records.errors import KernelcastError
from kernelcast.records.private_files import keep_among
from kernelcast.workers.decoding import NotDecodableError, decode
from kernelcast.workers.encoding import encode

STANDS_S: Final = 3600.0
"""Samples that are older say nothing: virtual machines get faster and slower."""
_MOST_FILES: Final = 2
"""In each of 256 folders: together some 10 MB."""
_log = logging.getLogger(__name__)


class SamplesStore:
    """Keeps the samples of launches; several processes may share it."""

    def __init__(self) -> None:
        self._has_failed = False

    def find(self, request: LaunchRequest) -> EstimateOutcome | None:
        try:
            path = _locate(request)
            if path is None:
                return None
            found: EstimateOutcome = decode(path.read_bytes(), EstimateOutcome)
        except (OSError, NotDecodableError, KernelcastError):
            return None
        now_s = time.time()
        moments = tuple(
            one for one in found.moments
            if one.at_s is not None and 0 <= now_s - one.at_s <= STANDS_S
        )  # fmt: skip
        if not moments or found.estimate.device_id != request.device.id:
            return None
        return replace(found, moments=moments)

    def keep(self, request: LaunchRequest, outcome: EstimateOutcome) -> None:
        """Keep what samples of a launch say, in the place of what was known before."""
        if not outcome.moments:
            return
        kept = replace(outcome, estimate=replace(outcome.estimate, measurement=None))
        try:
            path = _locate(request)
            if path is not None:
                keep_among(path, encode(kept.without_launches()), most=_MOST_FILES)
        except (OSError, KernelcastError) as error:
            if not self._has_failed:
                self._has_failed = True
                _log.warning(
                    "samples of launches are not kept, so later runs sample anew: %s", error
                )


def _locate(request: LaunchRequest) -> Path | None:
    """Name a launch by all that samples depend on; None where something is not known."""
    if request.is_live or request.problem.kernel.includes_files:  # whose contents are not known
        return None
    plan = request.policy.settings.plan
    key = (_stamp_code(), request.identify().key, plan.budget, plan.seed)
    digest = hashlib.sha256(repr(key).encode()).hexdigest()
    return data_folder() / "samples" / digest[:2] / f"{digest}.json"


@cache
def _stamp_code() -> str:
    """Give what changes with this package's code, wherever it is moved: any of it may matter."""
    package = Path(__file__).parents[2]
    is_installed = package.parent.name in {"site-packages", "dist-packages"}
    places = [package / "__init__.py"] if is_installed else sorted(package.rglob("*.py"))
    found = hashlib.sha256(version("kernelcast").encode())
    for path in places:
        status = path.stat()
        found.update(f"{path} {status.st_mtime_ns} {status.st_size}".encode())
    return found.hexdigest()
