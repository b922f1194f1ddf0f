"""Samples of launches in the data folder: the next process that asks for the same has them.

What samples say is a piece of evidence like another, whoever took them; it fades with the time that
has passed since. Contents of buffers are part of a launch's identity, so that another file is
another launch.
"""

import time
from dataclasses import replace
from typing import Final

from kernelcast.predictor.answering.kept_files import KeptFiles
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.tasks import EstimateOutcome
from kernelcast.workers.decoding import NotDecodableError, decode
from kernelcast.workers.encoding import encode

STANDS_S: Final = 3600.0
"""Samples that are older say nothing: virtual machines get faster and slower."""
_NOT_KEPT: Final = "samples of launches are not kept, so later runs sample anew"
# Together some 10 MB.
_MOST_FILES: Final = 2


class SamplesStore:
    """Keeps the samples of launches; several processes may share it."""

    def __init__(self) -> None:
        self._files = KeptFiles("samples", most_files=_MOST_FILES, not_kept=_NOT_KEPT)

    def find(self, request: LaunchRequest) -> EstimateOutcome | None:
        """Give the samples of a launch that still say something; None without any."""
        key = _name(request)
        text = None if key is None else self._files.find(key)
        if text is None:
            return None
        try:
            found: EstimateOutcome = decode(text, EstimateOutcome)
        except NotDecodableError:
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
        key = _name(request)
        if key is not None and outcome.moments:
            kept = replace(outcome, estimate=replace(outcome.estimate, measurement=None))
            self._files.keep(key, encode(kept.without_launches()))


def _name(request: LaunchRequest) -> tuple[object, ...] | None:
    """Name a launch by all that samples depend on; None where something is not known."""
    identity = None if request.is_live or request.includes_files else request.identify()
    if identity is None:
        return None
    plan = request.policy.settings.plan
    return identity.key, plan.budget, plan.seed
