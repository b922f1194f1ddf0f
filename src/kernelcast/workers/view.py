"""What a process can see that no stranger's kernel should: a task that tries its sandbox."""

import os
import socket
from pathlib import Path

from kernelcast.workers.task import Reporter

_SECRETS = ("/etc/shadow", "/etc/passwd", "/root", "/home", "/var", "/run")


def list_view(places: tuple[str, ...] | None, _: Reporter) -> tuple[str, ...]:
    """List what can be seen: of places those that can be opened, other processes, a network."""
    found = [place for place in (_SECRETS if places is None else places) if _can_read(Path(place))]
    others = [one for one in os.listdir("/proc") if one.isdigit() and int(one) != os.getpid()]  # noqa: PTH208 - names
    if os.getppid() != 1 or len(others) > 1:
        found.append("other processes")
    if any(name != "lo" for _, name in socket.if_nameindex()):
        found.append("the network")
    if os.geteuid() == 0:
        found.append("root's rights")
    return tuple(found)


def _can_read(path: Path) -> bool:
    """Tell whether anything is to be had from a file or folder."""
    try:
        if path.is_dir():
            return any(_can_read(one) for one in path.iterdir() if not one.is_dir())
        return bool(path.open("rb").read(1))
    except OSError:
        return False
