import sys
from pathlib import Path
from typing import Any

import pytest

from kernelcast.sampling.discovery import find_devices

pytestmark = pytest.mark.device

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MOST_FUNCTIONS, MOST_PROCESSES = 35, 2


@pytest.fixture(scope="module")
def ways() -> dict[str, Any]:
    """Trace each way to an estimate on the first device."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        from estimate_calls import measure
    finally:
        sys.path.remove(str(BENCHMARKS))
    device, _ = find_devices()[0]
    found: dict[str, Any] = measure(device.id)["ways"]
    return found


def list_below_entry(way: dict[str, Any]) -> list[str]:
    """List the functions from the one answer to the queue, without who carries it elsewhere."""
    calls = [name for chain in way["chains"] for name in chain]
    begin = calls.index("predictor.launch_answers:LaunchAnswers.ask")
    carriers = ("workers.", "predictor.answering.processes", "predictor.answering.live_objects",
                "predictor.answering.child_tasks", "predictor.answering.hang_watch")  # fmt: skip
    return [name for name in calls[begin:] if not name.startswith(carriers)]


def test_the_way_of_an_estimate_is_short(ways: dict[str, Any]) -> None:
    """A newcomer follows an estimate through few functions and two processes at most."""
    for name, way in ways.items():
        assert way["functions"] <= MOST_FUNCTIONS, name
        assert way["processes"] <= MOST_PROCESSES, name


def test_all_ways_are_one_below_their_entry(ways: dict[str, Any]) -> None:
    """Command line, live launches and the service ask the same functions."""
    first, *others = [set(list_below_entry(way)) for way in ways.values()]
    for other in others:
        assert _drop_sampling(other) == _drop_sampling(first)


def _drop_sampling(names: set[str]) -> set[str]:
    # Other launches go other ways through the sampler, and the first moment of some is all of it.
    rest = "launches.estimation:LaunchSampling.take_rest"
    return {name for name in names if not name.startswith("sampling.") and name != rest}
