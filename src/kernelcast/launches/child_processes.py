"""The child processes that list devices and sample on them; imports no driver and no library."""

from functools import cache

from kernelcast.workers import BESIDE, WarmChildren

_LISTING = "kernelcast.launches.devices"
_SAMPLING = "kernelcast.predictor.answering.measuring"


@cache
def share_children() -> WarmChildren:
    return WarmChildren()


def start_ahead(device_id: str | None) -> None:
    """Start the process that lists the devices, then samples on one; waits for nothing."""
    steps = [f"{_LISTING}:look:"]
    if device_id is not None:
        steps.append(f"{BESIDE}{_SAMPLING}:make_ready:{device_id}")
    share_children().start_ahead(steps)
