"""The child processes that list devices and sample on them; imports no driver and no library."""

from functools import cache

from kernelcast.workers import BESIDE, WarmChildren

_LISTING = "kernelcast.launches.device_tasks"
_SAMPLING = "kernelcast.predictor.answering.child_tasks"


@cache
def share_children() -> WarmChildren:
    """Give the devices' processes that everything a command does shares."""
    return WarmChildren()


def start_ahead(device_id: str | None) -> None:
    """Start the process that lists the devices and then samples on one, and wait for nothing.

    It lists the devices while we import what we need and read files, and imports what it needs and
    opens the device while we find out what to ask.

    Parameters
    ----------
    device_id : str or None
        Id of the device, or its beginning; empty for the first that there is, None for none.
    """
    steps = [f"{_LISTING}:look:"]
    if device_id is not None:
        steps.append(f"{BESIDE}{_SAMPLING}:make_ready:{device_id}")
    share_children().start_ahead(steps)
