"""A PostgreSQL cluster of the tests' own, that can be stopped and started again."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

from support.running_service import find_port

_OWNER = "postgres"


class PostgresqlCluster:
    """A cluster in a folder of its own while the block runs."""

    def __init__(self) -> None:
        self._port = find_port()
        self._is_running = False
        # Another user has to get in, and a socket's path must be short.
        self._folder = Path(tempfile.mkdtemp(prefix="kernelcast-pg-"))

    @property
    def server(self) -> str:
        """URL without a database."""
        return f"postgresql://{_OWNER}@127.0.0.1:{self._port}"

    def make_database(self) -> str:
        """Make an empty database; give its URL."""
        import psycopg

        name = f"rows{time.monotonic_ns()}"
        with psycopg.connect(f"{self.server}/postgres", autocommit=True) as connection:
            connection.execute(f"create database {name}".encode())
        return f"{self.server}/{name}"

    def __enter__(self) -> Self:
        if os.geteuid() == 0:
            shutil.chown(self._folder, _OWNER)
        self._run("initdb", "-U", _OWNER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_running:
            self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start the server."""
        options = f"-p {self._port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        log = str(self._folder / "log")
        self._run("pg_ctl", "-l", log, "-w", "-o", options, "start")
        self._is_running = True

    def stop(self) -> None:
        """Stop the server as a crash would."""
        self._run("pg_ctl", "-m", "immediate", "-w", "stop")
        self._is_running = False

    def _run(self, program: str, *words: str) -> None:
        owner = ["runuser", "-u", _OWNER, "--"] if os.geteuid() == 0 else []
        done = subprocess.run(
            [*owner, str(find_binaries() / program), "-D", str(self._folder / "data"), *words],
            cwd="/", text=True, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        if done.returncode:
            raise AssertionError(done.stdout)


def find_binaries() -> Path:
    """Give the folder with PostgreSQL's programs; Debian keeps them off the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return (found[-1] if found else Path(shutil.which("initdb") or "initdb")).parent


def explain_absence() -> str:
    """Say why there can be no cluster here; an empty text where there can."""
    if not (find_binaries() / "initdb").is_file():
        return "PostgreSQL's initdb and pg_ctl are not installed: apt-get install postgresql"
    if os.geteuid() != 0:
        return ""
    try:
        pwd.getpwnam(_OWNER)
    except KeyError:
        return f"PostgreSQL does not run as root, and there is no user {_OWNER} to run it as"
    return "" if shutil.which("runuser") else "there is no runuser to run PostgreSQL with"
