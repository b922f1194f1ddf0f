"""What keeps submitted kernels from the service's files, and what is said where nothing does."""

from pathlib import Path

from kernelcast.predictor.confinement import Protection, choose_protection
from kernelcast.service.settings import ServiceSettings


def protect(settings: ServiceSettings, database: str) -> Protection:
    """Find the protection of a service."""
    named = [database, settings.registry or "", str(settings.token_file or "")]
    files = [Path(one) for one in named if one and "://" not in one]
    # What SQLite keeps beside its file is as secret.
    beside = [Path(f"{database}{end}") for end in ("-wal", "-shm") if "://" not in database]
    return choose_protection(settings.sandbox, (*files, *beside))


def describe_gap(settings: ServiceSettings, protection: Protection) -> str:
    """Say that submitted kernels run unconfined and what to do; empty if they do not."""
    if not settings.allow_run or protection.confinement is not None:
        return ""
    why = f": {protection.failure}" if protection.failure else " (--sandbox off)"
    return (
        "submitted kernels run without a sandbox; on a CPU device they can read and change what "
        f"this user can{why}"
    )
