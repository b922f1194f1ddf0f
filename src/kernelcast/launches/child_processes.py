"""The child processes that list devices and sample on them; imports no driver and no library."""

from functools import cache

from kernelcast.workers import BESIDE, WarmChildren


@cache
def share_children() -> WarmChildren:
    return WarmChildren()


def start_ahead(device_id: str | None) -> None:
    """Start the process that lists the devices, then samples on one; waits for nothing."""
    steps = ["kernelcast.launches.devices:look:"]
    if device_id is not None:
        sampling = "kernelcast.predictor.answering.measuring"
        steps.append(f"{BESIDE}{sampling}:make_ready:{device_id}")
    share_children().start_ahead(steps)
