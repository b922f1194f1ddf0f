"""How a service is run, and its limits."""

import ipaddress
import os
import uuid
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from cattrs.preconf.json import make_converter

from kernelcast.launches.settings import DEFAULT_LEAST_GAIN
from kernelcast.predictor.confinement import SandboxMode, choose_protection
from kernelcast.records.errors import InputError
from kernelcast.records.service_state import ServiceIdentity
from kernelcast.workers import Confinement

API_VERSION: Final = "1.14.0"
"""Grows with every change of the API: docs/reference/openapi.yaml."""
API_PREFIX: Final = "/v1"
"""Where the API is."""
_RANGES: Final = {
    "port": (0, 65535), "workers": (1, 65536), "refine_share": (0, 1), "least_gain": (0, 1e6),
}  # fmt: skip
CONVERTER: Final = make_converter()
"""Writes settings as JSON, for processes that are started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    body_bytes: int = 4 << 20
    connections: int = 512
    """At once, in each process; further ones are told to come again."""
    source_bytes: int = 256 * 1024
    buffer_bytes: int = 2 << 30
    """Of all buffers of a problem together."""
    work_items: int = 2**53
    """Of a launch: numbers of JSON and of doubles are exact so far."""
    problems: int = 64
    devices: int = 16
    observations: int = 5000
    """In one request."""
    sample_seconds: float = 60.0
    """Time limit of one sampling, build included."""
    wait_seconds: float = 30.0
    """Longest wait for a device that is measured for somebody else, and for the answer without
    running that is given instead."""
    queue: int = 8
    """Samplings that may wait for one device, in each process of the service."""
    wrong_tokens: int = 10
    """Of one token's id, within a minute; further ones are told to wait."""
    answers: int = 2_000_000
    """That are kept in the database; the oldest go first."""
    answer_days: float = 400.0
    """How long they are kept."""
    streams: int = 64
    """Jobs that are followed at once, in each process: each stream looks twice a second."""

    def __post_init__(self) -> None:
        for one in fields(self):
            if not getattr(self, one.name) > 0:
                msg = f"limit {one.name} {getattr(self, one.name)}: give a number above 0"
                raise InputError(msg)


def _identify_service() -> ServiceIdentity:
    """Name a running service, all processes of one `kernelcast serve`; nothing here is secret."""
    return ServiceIdentity(
        instance=uuid.uuid4().hex[:16], version=version("kernelcast"), api=API_VERSION,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"), pid=os.getpid(),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    host: str = "127.0.0.1"
    port: int = 8372
    workers: int = 1
    """Processes."""
    database: str | None = None
    """Store of observations and of the service's own state: a SQLite file, or a URL of PostgreSQL.
    The user's own store when left out."""
    registry: str | None = None
    """Folder or URL of trained models; the user's own when left out."""
    allow_run: bool = False
    """Whether submitted kernels may be compiled and run at all."""
    sandbox: SandboxMode = SandboxMode.AUTO
    """Whether processes with submitted sources and kernels are confined."""
    require_tokens: bool = False
    """Whether callers need a token; always the case beyond loopback."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies that tell where requests began; such a service always needs
    tokens, for whoever comes through a proxy may come from anywhere."""
    token_file: Path | None = None
    """Tokens beside those of the database; see `kernelcast.service.authentication`."""
    runs_jobs: bool = True
    refine_share: float = 0.02
    """Of the time, which may go into sampling launches again that somebody has asked for, while no
    request waits; 0: none."""
    least_gain: float = DEFAULT_LEAST_GAIN
    """Where earlier samples of a launch or other sizes of its kernel are known: seconds by which a
    second of sampling has to narrow the interval, unless a request says otherwise."""
    log_level: str = "info"
    """Least level of lines in the log: debug, info, warning or error."""
    limits: Limits = field(default_factory=Limits)
    identity: ServiceIdentity = field(default_factory=_identify_service)

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if not least <= value <= most:
                told = name.replace("_", " ")
                raise InputError(f"{told} {value}: give a number from {least} to {most:g}")
        for one in self.trusted_proxies:
            try:
                ipaddress.ip_network(one.strip())
            except ValueError as error:
                raise InputError(
                    f"trusted proxy {one!r}: give an address such as 127.0.0.1, or a network such "
                    f"as 10.0.0.0/8 ({error})"
                ) from error

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @property
    def needs_tokens(self) -> bool:
        is_asked_for = self.require_tokens or self.token_file is not None
        return is_asked_for or bool(self.trusted_proxies) or not self.is_loopback

    def protect(self, database: str) -> tuple[Confinement | None, str]:
        """Find what keeps submitted kernels from the service's files, and what is wrong with it."""
        named = [database, self.registry or "", str(self.token_file or "")]
        files = [Path(one) for one in named if one and "://" not in one]
        # What SQLite keeps beside its file is as secret.
        beside = [Path(f"{database}{end}") for end in ("-wal", "-shm") if "://" not in database]
        return choose_protection(self.sandbox, (*files, *beside))

    def describe_gap(self, confinement: Confinement | None, failure: str) -> str:
        """Say that submitted kernels run unconfined and what to do; empty if they do not."""
        if not self.allow_run or confinement is not None:
            return ""
        why = f": {failure}" if failure else " (--sandbox off)"
        return (
            "submitted kernels run without a sandbox; on a CPU device they can read and change "
            f"what this user can{why}"
        )
