"""The child processes that list devices and sample on them; imports no driver and no library."""

from functools import cache

from kernelcast.workers import WarmChildren

_MODULES = ("kernelcast.launches.device_tasks", "kernelcast.predictor.answering.child_tasks")


@cache
def share_children() -> WarmChildren:
    """Give the devices' processes that everything a command does shares."""
    return WarmChildren()


def start_ahead() -> None:
    """Start the process that lists the devices and then samples on one, and wait for nothing.

    It imports what it needs while we import what we need.
    """
    share_children().start_ahead(_MODULES)
