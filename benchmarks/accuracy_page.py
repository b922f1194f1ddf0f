"""How long the page *Accuracy* and the lists take over a store of a million observations.

``python benchmarks/accuracy_page.py sqlite`` fills a store twice, with 20,000 launches of 50
observations each and with one launch that has nearly all of them, starts `kernelcast serve` over
it, and measures

1. the first page of a fresh process;
2. the page when nothing has changed;
3. the page right after another process has added an observation, of one launch or another;
4. the page right after one was added to the launch with most observations;
5. Home, the list of observations and the page of a kernel.

``postgresql`` does the same with a cluster of its own. `--rows` makes smaller stores.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa
from machine import describe_machine

from kernelcast.records.launch_identity import digest_text
from kernelcast.records.observation import Observation, Origin
from kernelcast.testing.observations import make_observation
from kernelcast.testing.postgresql_cluster import PostgresqlCluster
from kernelcast.testing.service_process import ServiceProcess
from kernelcast.training_data.store import open_store
from kernelcast.training_data.store.connecting import WRITER, connect, parse_url
from kernelcast.training_data.store.rows import observation_to_row
from kernelcast.training_data.store.tables import OBSERVATIONS
from kernelcast.training_data.store.writing import split

RESULTS = Path(__file__).parent / "results" / "accuracy_page"
_LAUNCHES = {"spread": 20_000, "hot": 2_000}
_KERNELS = 200
_LISTS = {
    "home": "/", "observations": "/observations",
    "kernel": "/kernels/of?name=suite/application0/kernel0",
}  # fmt: skip
_REPEATS = 9
_BATCH = 5_000
_SPREAD = 0.03


def main() -> None:
    """Measure, and write what was found."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("database", choices=["sqlite", "postgresql"])
    asked.add_argument("--rows", type=int, default=1_000_000)
    asked.add_argument("--note", default="", help="what else ran on the machine")
    options = asked.parse_args()
    found: dict[str, Any] = {"machine": describe_machine(), "note": options.note}
    for kind in _LAUNCHES:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            url = str(folder / "observations.sqlite")
            if options.database == "postgresql":
                url = stack.enter_context(PostgresqlCluster()).url
            found[kind] = _measure(url, folder, kind, options.rows)
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, indent=2) + "\n"
    (RESULTS / f"{options.database}.json").write_text(text, encoding="utf-8")


def _measure(url: str, folder: Path, kind: str, rows: int) -> dict[str, object]:
    launches = min(_LAUNCHES[kind], rows // 2)
    begun_s = time.perf_counter()
    _fill(url, _make_rows(kind, rows, launches))
    filled_s = time.perf_counter() - begun_s
    with ServiceProcess(folder / "data", "--database", url) as service, httpx.Client() as client:

        def ask(page: str = "/accuracy") -> float:
            begun_s = time.perf_counter()
            answer = client.get(
                f"{service.url}{page}", headers={"accept": "text/html"}, timeout=600
            )
            answer.raise_for_status()
            return time.perf_counter() - begun_s

        first_s = ask()
        unchanged = [ask() for _ in range(_REPEATS)]
        spread = _ask_after(url, ask, lambda place: 1 + place * 7 % (launches - 1))
        hot = _ask_after(url, ask, lambda _: 0)
        lists = {
            name: _summarise([ask(page) for _ in range(_REPEATS)]) for name, page in _LISTS.items()
        }
        # Whoever comes to a new process by way of a list waits for it instead.
        service.stop()
        service.start()
        first_list_s = ask("/observations")
    return {
        "observations": rows,
        "launches": launches,
        "fill_s": round(filled_s, 1),
        "first_page_of_a_process_s": round(first_s, 3),
        "nothing_changed": _summarise(unchanged),
        "after_an_observation_of_any_launch": _summarise(spread),
        "after_an_observation_of_the_first_launch": _summarise(hot),
        "first_list_of_a_process_s": round(first_list_s, 3),
        "lists": lists,
    }


def _ask_after(url: str, ask: Callable[[], float], choose: Callable[[int], int]) -> list[float]:
    """Time the page after each of several observations."""
    found = []
    with open_store(url) as store:
        for place in range(_REPEATS):
            now = datetime.now(UTC)
            one = _make_observation(choose(place))
            store.add(replace(one, measurement=now.isoformat(), measured_at=now))
            found.append(ask())
    return found


def _make_observation(launch: int) -> Observation:
    one = make_observation(launch, kernels=_KERNELS, devices=3)
    return replace(one, samples=(), features=None, origin=Origin.OBSERVED)


def _make_rows(kind: str, rows: int, launches: int) -> Iterator[dict[str, Any]]:
    """Make rows of launches in turn, the first of each sampled; or of the first one after that."""
    rng = random.Random(1)
    plain = [observation_to_row(_make_observation(one), None) for one in range(launches)]
    for number in range(rows):
        is_first = number < launches
        row = plain[number % launches if kind == "spread" or number < 2 * launches else 0]
        seconds = row["seconds"] * rng.lognormvariate(0, _SPREAD)
        yield row | {
            "key": digest_text(str(number)),
            "measurement": str(number),
            "seconds": seconds,
            "durations_s": json.dumps([seconds]),
            "noise": None,
            "run_count": 1,
            "linear_s": row["seconds"] * rng.lognormvariate(0.02, 0.1) if is_first else None,
            "measured_at_us": row["measured_at_us"] + 1000 * number,
        }


def _fill(url: str, rows: Iterator[dict[str, Any]]) -> None:
    open_store(url).close()
    engine = connect(parse_url(url))
    for batch in split(rows, _BATCH):
        with engine.connect().execution_options(**WRITER) as connection, connection.begin():
            new = sa.insert(OBSERVATIONS).prefix_with("OR FAIL", dialect="sqlite")
            connection.execute(new, batch)
    engine.dispose()


def _summarise(times_s: list[float]) -> dict[str, float]:
    return {"median_s": round(statistics.median(times_s), 3), "most_s": round(max(times_s), 3)}


if __name__ == "__main__":
    main()
