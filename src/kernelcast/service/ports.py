"""Says who listens at a port that the service should have."""

import contextlib
import errno
import json
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kernelcast.records.errors import InputError, KernelcastError

_ASK_S: Final = 2.0
_LISTENING: Final = "0A"
"""TCP_LISTEN of Linux's include/net/tcp_states.h."""
_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
_MOST_BYTES: Final = 4096


def check_port(host: str, port: int) -> None:
    """Check that a service could listen, before it opens anything."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        msg = f"host {host!r}: {error.strerror}; give an address of this machine"
        raise InputError(msg) from error
    family, kind, _, _, address = found[0]
    try:
        with socket.socket(family, kind) as one:
            # As the server does: what a service has left behind a minute ago hinders nobody.
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(address)
            one.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            msg = (
                f"{host}:{port} is in use by {name_holder(host, port)}; end that, or choose "
                "another --port"
            )
            raise KernelcastError(msg) from error
        msg = f"{host}:{port}: {error.strerror}; choose another --host or --port"
        raise KernelcastError(msg) from error


def name_holder(host: str, port: int) -> str:
    """Name who listens at a port: a kernelcast service, else a process of this machine."""
    holders = ", ".join(_list_holders(port))
    told = _ask_health(host, port)
    if told is None:
        return holders or "a process that this user may not see"
    return (
        f"kernelcast {told['version']}, instance {told['instance']}, running since "
        f"{told['started_at']} as process {told['pid']}"
    )


def _ask_health(host: str, port: int) -> dict[str, Any] | None:
    """Give what a kernelcast service says of itself; None where it is something else."""
    name = _ANY.get(host, host)
    url = f"http://{f'[{name}]' if ':' in name else name}:{port}/health"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_ASK_S) as answer:
            told = json.loads(answer.read(_MOST_BYTES))
        named = {name: str(told[name]) for name in ("version", "instance", "started_at", "pid")}
    except Exception:  # noqa: BLE001 - whatever listens there may answer anything
        return None
    is_plain = all(one.isprintable() and len(one) < 100 for one in named.values())
    return named if told.get("service") == "kernelcast" and is_plain else None


def _list_holders(port: int) -> Iterator[str]:
    """Name the processes that listen at a port, where Linux lets us see them."""
    wanted = {f"socket:[{one}]" for one in _list_inodes(port)}
    if not wanted:
        return
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_it = any(str(link.readlink()) in wanted for link in (folder / "fd").iterdir())
            name = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:  # of another user, or gone meanwhile
            continue
        if is_it:
            yield f"process {folder.name} ({name})"


def _list_inodes(port: int) -> set[str]:
    """Give the numbers of the sockets that listen at a port."""
    found: set[str] = set()
    for table in _TABLES:
        with contextlib.suppress(OSError):
            for line in table.read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                is_ours = int(fields[1].rpartition(":")[2], 16) == port
                if is_ours and fields[3] == _LISTENING:
                    found.add(fields[9])
    return found
