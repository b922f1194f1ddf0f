"""What is said of launches that were to be sampled and were not."""

from dataclasses import replace
from http import HTTPStatus

from kernelcast.records.estimates import Estimate
from kernelcast.records.explanation import Tier
from kernelcast.service.backend import Ask
from kernelcast.service.errors import ApiError
from kernelcast.service.timeouts import TimedOut


def refuse_repeat(ask: Ask, found: TimedOut) -> ApiError:
    """Refuse a launch that did not end in time, without running it."""
    return ApiError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "kernel_timeout",
        f"{ask.device.id}: this launch did not end when it was sampled at "
        f"{found.at:%Y-%m-%d %H:%M:%S} UTC, and is not run again before "
        f"{found.until:%Y-%m-%d %H:%M:%S} UTC. Change its source, build options, sizes or "
        "arguments; report what whole runs take; ask for an answer that runs nothing "
        '("sampling": "never"); or start the service with a longer --timeout if it is only slow. '
        f"It was said then: {found.reason}",
        detail={
            "timed_out_at": found.at.isoformat(),
            "not_before": found.until.isoformat(),
            "limit_seconds": found.limit_s,
        },
    )


def explain_unsampled(estimate: Estimate, why: str) -> Estimate:
    """Say in an answer why the launch was not sampled, and that asking again may be better."""
    note = f"not sampled: {why}"
    known = estimate.explain()
    missing = {**known.missing, **dict.fromkeys((Tier.HYBRID.value, Tier.LINEAR.value), why)}
    return replace(
        estimate,
        warnings=(note, *estimate.warnings),
        explanation=replace(known, missing=missing),
    )
