"""Loads a service from a process of its own and says what it bears.

``python benchmarks/service_load.py --device intel --minutes 10`` starts `kernelcast serve` with one
worker in a folder of its own, and measures

1. estimates that are kept: answers per second and the time of each, over eight connections;
2. observations in batches of 500, over two connections, and whether each acknowledged one is
   stored;
3. both together for the minutes asked for: growth of the server's memory.

The client is a bare reader of HTTP/1.1: it must take less time than the server. Nothing is run on
the device; estimates come from observations that are sent first.
"""

import argparse
import asyncio
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machine import describe_machine

from kernelcast.client import Client
from kernelcast.testing.service_process import ServiceProcess

RESULTS = Path(__file__).parent / "results" / "service_load"
_BATCH = 500
_WARM_UP_S = 60.0
_PROBLEM: dict[str, Any] = {
    "code": "kernel void fill(global float *a) { a[get_global_id(0)] = 1.0f; }",
    "kernel": "fill",
    "global_size": [1 << 20],
    "local_size": [64],
    "args": [{"buffer": "float32", "count": 1 << 20}],
}


class Connection:
    """One connection that is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> "Connection":
        """Connect."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, path: str, body: bytes) -> bytes:
        """Send a request and give the body of its answer."""
        head = (
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise AssertionError(answer.decode())
        lengths = [one for one in answer.lower().split(b"\r\n") if one[:15] == b"content-length:"]
        return await self._reader.readexactly(int(lengths[0][15:]))

    def close(self) -> None:
        """Close."""
        self._writer.close()


async def load_estimates(
    port: int, body: bytes, *, connections: int, until_s: float
) -> list[float]:
    """Ask again and again; give the time of each answer in seconds."""
    found: list[float] = []

    async def ask() -> None:
        one = await Connection.open(port)
        while time.perf_counter() < until_s:
            begin_s = time.perf_counter()
            await one.ask("/v1/estimates", body)
            found.append(time.perf_counter() - begin_s)
        one.close()

    await asyncio.gather(*(ask() for _ in range(connections)))
    return found


async def load_observations(  # noqa: PLR0913 - what, where, how fast
    port: int,
    make: Callable[[str], bytes],
    *,
    connections: int,
    until_s: float,
    pause_s: float = 0.0,
    name: str = "load",
) -> int:
    """Send batches; give how many observations were acknowledged."""
    stored = 0

    async def send(number: int) -> None:
        nonlocal stored
        one = await Connection.open(port)
        batch = 0
        while time.perf_counter() < until_s:
            answer = json.loads(await one.ask("/v1/observations", make(f"{name}-{number}-{batch}")))
            stored += answer["added"]
            batch += 1
            await asyncio.sleep(pause_s)
        one.close()

    await asyncio.gather(*(send(number) for number in range(connections)))
    return stored


def measure(device: str, seconds: float, minutes: float) -> dict[str, Any]:
    """Measure all three."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        with ServiceProcess(data, "--no-jobs") as service, Client(service.url) as client:
            port = int(service.url.rpartition(":")[2])
            found = next(one for one in client.devices() if one.id.startswith(device))
            digest = client.send_problem(_PROBLEM)
            report = {"problem_digest": digest, "device": found.id, "seconds": 0.01}
            client.observe([report] * 5)
            other = client.send_problem({**_PROBLEM, "global_size": [1 << 19]})
            body = json.dumps({"problem_digest": digest, "devices": [found.id]}).encode()
            batch = [{"problem_digest": other, "device": found.id, "seconds": 0.01}] * _BATCH

            def make(name: str) -> bytes:
                named = [{**one, "key": f"{name}-{place}"} for place, one in enumerate(batch)]
                return json.dumps({"observations": named}).encode()

            time.sleep(2)  # until the observations above are seen
            kept = asyncio.run(_measure_estimates(port, body, seconds))
            rows = asyncio.run(_measure_observations(port, make, seconds))
            mixed = asyncio.run(_measure_both(port, body, make, minutes * 60, service.pid))
            stored = _count(data) - 5
            acknowledged = rows["acknowledged"] + mixed["observations_acknowledged"]
    return {
        "machine": describe_machine(),
        "device": found.id,
        "kept_estimates": kept,
        "observations": rows,
        "mixed": mixed,
        "observations_acknowledged": acknowledged,
        "observations_stored": stored,
        "observations_lost": acknowledged - stored,
    }


async def _measure_estimates(port: int, body: bytes, seconds: float) -> dict[str, Any]:
    await load_estimates(port, body, connections=8, until_s=time.perf_counter() + 2)
    found = await load_estimates(port, body, connections=8, until_s=time.perf_counter() + seconds)
    return {"per_second": len(found) / seconds, "connections": 8, **_summarise(found)}


async def _measure_observations(
    port: int, make: Callable[[str], bytes], seconds: float
) -> dict[str, Any]:
    begin_s = time.perf_counter()
    stored = await load_observations(port, make, connections=2, until_s=begin_s + seconds)
    passed_s = time.perf_counter() - begin_s
    return {"per_second": stored / passed_s, "batch": _BATCH, "acknowledged": stored}


async def _measure_both(
    port: int, body: bytes, make: Callable[[str], bytes], seconds: float, pid: int
) -> dict[str, Any]:
    until_s = time.perf_counter() + seconds
    memory: list[tuple[float, int]] = []

    async def watch() -> None:
        begin_s = time.perf_counter()
        while time.perf_counter() < until_s:
            memory.append((time.perf_counter() - begin_s, _read_memory(pid)))
            await asyncio.sleep(1)

    times, stored, _ = await asyncio.gather(
        load_estimates(port, body, connections=4, until_s=until_s),
        load_observations(port, make, connections=1, until_s=until_s, pause_s=0.25, name="mixed"),
        watch(),
    )
    warm_s = min(_WARM_UP_S, seconds / 4)
    before = next(size for at_s, size in memory if at_s >= warm_s)
    return {
        "seconds": seconds,
        "estimates_per_second": len(times) / seconds,
        "estimates": _summarise(times),
        "observations_acknowledged": stored,
        "memory_bytes_after_warm_up": before,
        "memory_bytes_at_the_end": memory[-1][1],
        "memory_growth": memory[-1][1] / before - 1,
        "warm_up_seconds": warm_s,
    }


def _summarise(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        f"p{share}_ms": 1e3 * ordered[min(len(ordered) - 1, len(ordered) * share // 100)]
        for share in (50, 99)
    } | {"worst_ms": 1e3 * ordered[-1]}


def _read_memory(pid: int) -> int:
    """Give the resident memory of a process, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return 1024 * next(int(one.split()[1]) for one in lines if one.startswith("VmRSS:"))


def _count(data: Path) -> int:
    connection = sqlite3.connect(data / "observations.sqlite")
    count: int = connection.execute("SELECT count(*) FROM observations").fetchone()[0]
    connection.close()
    return count


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="intel")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--minutes", type=float, default=10.0)
    asked = parser.parse_args()
    result = measure(asked.device, asked.seconds, asked.minutes)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{asked.device}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({key: one for key, one in result.items() if key != "machine"}, indent=1))


if __name__ == "__main__":
    main()
