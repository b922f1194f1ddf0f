"""The page Accuracy: what it shows with data and without, and what it says of errors."""

import csv
import io
import math
import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.launches.data_store import open_data_store
from kernelcast.models.persistence import ModelRegistry
from kernelcast.models.time_models import make_model
from kernelcast.predictor.answering.trained_models import find_shipped
from kernelcast.records.observation import Observation, Origin
from kernelcast.records.observed_times import RunTimes
from kernelcast.reports.accuracy import held_launches, model_answers
from kernelcast.service import ServiceSettings, guard
from kernelcast.service.pages.accuracy.reasons import tell_reasons
from kernelcast.service.pages.accuracy.scores import (
    Judged,
    bin_by_time,
    score_kernels,
    score_methods,
)
from kernelcast.training.settings import ALL_ROWS, ValidationSettings
from kernelcast.training.table import tabulate
from kernelcast.training.validating import validate_models
from support.observations import make_observation
from support.page_examples import fill_store
from support.synthetic_rows import make_rows

LOCKS = Path("/proc/locks")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _without_shipped_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_answers, "find_shipped", lambda: str(tmp_path / "none"))


def _show(client: TestClient, path: str = "/accuracy", status: int = 200) -> str:
    answer = client.get(path, headers={"accept": "text/html"})
    assert answer.status_code == status
    return answer.text


@pytest.mark.parametrize(
    ("source", "told", "link"),
    [
        ("observations", "holds no observations yet", "/jobs?new=collect#start"),
        ("validation", "No model in use was validated", "/jobs?new=train#start"),
        ("answers", "Nothing that was answered was observed yet", "/lab"),
    ],
)
def test_without_data_it_says_what_to_do(
    client: TestClient, source: str, told: str, link: str
) -> None:
    """Each source of predictions names the next step."""
    page = _show(client, f"/accuracy?source={source}")
    assert told in page
    assert f'href="{link}"' in page


def test_a_launch_that_is_observed_again_has_a_history(
    client: TestClient, problem: dict[str, Any]
) -> None:
    """Every observation is judged by those before it, and a lasting shift is seen."""
    for number in range(12):
        seconds = 0.1 if number < 6 else 0.2
        answer = client.post(
            "/v1/observations",
            json={"observations": [
                {"key": str(number), "problem": problem, "device": "fake-device-0000",
                 "seconds": seconds * (1 + 0.001 * number), "local_size": [64]}
            ]},
        )  # fmt: skip
        assert answer.status_code == 200, answer.text
    page = _show(client)
    assert "history" in page
    assert "than before, for good" in page
    assert "its times have shifted for good" in page


def _sampled(number: int) -> Observation:
    one = make_observation(number)
    return replace(one, samples=(replace(one.samples[0], multiple=0),))


def _flood(database: str, *, launches: int, hot: int) -> list[Observation]:
    """Store sampled launches of one device, each observed again, and one of them very often."""
    sampled = [make_observation(number, kernels=3, devices=1) for number in range(launches)]
    again = [
        replace(
            sampled[number], samples=(), features=None, origin=Origin.OBSERVED,
            measurement=str(place), runs=RunTimes(median_s=sampled[number].seconds),
            measured_at=BEGIN + timedelta(days=1, seconds=place),
        )
        for number in range(launches)
        for place in range(hot if number == 0 else 1)
    ]  # fmt: skip
    with open_data_store(database) as store:
        store.add_many([*sampled, *again])
    return sampled


def test_models_that_come_with_the_package_are_read(
    client: TestClient, settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them is complained about, those that only weigh evidence included."""
    monkeypatch.setattr(model_answers, "find_shipped", find_shipped)
    fill_store(str(settings.database))
    page = _show(client)
    assert "cannot be read" not in page


def test_a_hot_launch_is_one_among_others(client: TestClient, settings: ServiceSettings) -> None:
    """It neither crowds the others out nor weighs more; its dot has its own median and noise."""
    _flood(str(settings.database), launches=8, hot=6000)
    page = _show(client, "/accuracy?method=history")
    assert "All methods have predicted 8\nlaunches" in page
    rows = list(
        csv.DictReader(io.StringIO(client.get("/accuracy/launches.csv?method=history").text))
    )
    assert len(rows) == 8


def test_methods_are_compared_on_common_launches(
    client: TestClient, settings: ServiceSettings
) -> None:
    """The table says how many there are, and how many each has beyond; errors are of these only."""
    sampled = _flood(str(settings.database), launches=5, hot=1)
    with open_data_store(str(settings.database)) as store:
        # The linear model is twice as long on launches that no history knows.
        more = [make_observation(number, kernels=3, devices=1) for number in range(20, 23)]
        store.add_many([replace(one, runs=RunTimes(median_s=one.seconds / 2)) for one in more])
        # And nobody has sampled this one.
        for number in range(2):
            store.add(replace(
                make_observation(30, kernels=3, devices=1), samples=(), features=None,
                measurement=str(number),
            ))  # fmt: skip
    page = _show(client, "/accuracy?method=linear")
    assert "All methods have predicted 5\nlaunches" in page
    cells = re.findall(r'<th scope="row">(linear|history)</th>(.*?)</tr>', page, re.DOTALL)
    table = {name: re.findall(r"<td[^>]*>([^<]*)<", text) for name, text in cells}
    assert table["linear"][:2] == ["5", "3"]
    assert table["history"][:2] == ["5", "1"]
    worst = max(abs(one.samples[0].linear_s / one.seconds - 1) for one in sampled)
    assert float(table["linear"][7].removesuffix(" %")) < 100 * worst + 0.1
    rows = list(
        csv.DictReader(io.StringIO(client.get("/accuracy/launches.csv?method=linear").text))
    )
    assert len(rows) == 8


def test_methods_without_a_common_launch_are_not_compared(
    client: TestClient, settings: ServiceSettings
) -> None:
    """The page says so; each has the errors of its own launches."""
    with open_data_store(str(settings.database)) as store:
        store.add(make_observation(0))
        for number in range(2):
            store.add(replace(make_observation(3), samples=(), features=None,
                              measurement=str(number)))  # fmt: skip
    assert "they cannot be compared" in _show(client, "/accuracy?device=device-0")


def test_an_observation_is_seen_at_once(client: TestClient, settings: ServiceSettings) -> None:
    """Whoever has written it, and when it is removed again; other launches are not read again."""
    sampled = _flood(str(settings.database), launches=4, hot=1)
    path = "/accuracy/launches.csv?method=linear"

    def count() -> int:
        return len(client.get(path).text.splitlines()) - 1

    assert count() == 4
    new = make_observation(9, kernels=3, devices=1)
    with pytest.MonkeyPatch.context() as patch, open_data_store(str(settings.database)) as store:
        read: list[str] = []
        sum_up = held_launches.sum_up_launches
        patch.setattr(
            held_launches, "sum_up_launches",
            lambda store, keys, wanted: (read.extend(keys), sum_up(store, keys, wanted))[1],
        )  # fmt: skip
        store.add(new)
        assert count() == 5
        store.remove([sampled[0].key, sampled[1].key])
        assert count() == 3
        assert count() == 3
        assert sorted(read) == sorted([new.launch.key, *(one.launch.key for one in sampled[:2])])


def _list_locks(path: str) -> list[str]:
    """Give this process's locks of a file; SQLite has one as long as a connection is open."""
    inode = Path(path).stat().st_ino
    locks = [line.split() for line in LOCKS.read_text(encoding="utf-8").splitlines()]
    own = [one for one in locks if len(one) > 5 and one[4] == str(os.getpid())]
    return [one[5] for one in own if one[5].endswith(f":{inode}")]


@pytest.mark.skipif(not LOCKS.exists(), reason="the system does not tell locks of files")
def test_a_look_leaves_the_locks_of_the_store(
    client: TestClient, settings: ServiceSettings
) -> None:
    """Opened and closed as a plain file it would lose them, and the next process its log."""
    database = str(settings.database)
    old, new = [_sampled(number) for number in range(0, 30, 3)], _sampled(33)
    with open_data_store(database) as store:
        store.add_many([*old, new])
        # A model that is asked about what it has not learned from.
        table = tabulate(old)
    plan = ValidationSettings(models=("linear",), rows=ALL_ROWS, jobs=1)
    registry = ModelRegistry(url=str(settings.registry))
    fitted = make_model("linear").fit(table)
    registry.publish("linear/device-0", fitted, validate_models(table, plan))
    with open_data_store(database) as store:
        assert store.count() == len(old) + 1
        before = _list_locks(database)
        assert before
        assert '<th scope="row">linear/device-0</th>' in _show(client, "/accuracy/models")
        client.get("/accuracy/launches.svg")
        assert _list_locks(database) == before


def test_answers_of_this_process(client: TestClient, problem: dict[str, Any]) -> None:
    """What was answered and then observed is compared by the answer's tier."""
    client.post("/v1/estimates", json={"problem": problem, "devices": ["fake"]})
    client.post(
        "/v1/observations",
        json={"observations": [
            {"key": "1", "problem": problem, "device": "fake-device-0000", "seconds": 1.2e-5}
        ]},
    )  # fmt: skip
    page = _show(client, "/accuracy?source=answers")
    assert "Methods on fake-device-0000" in page
    assert '<th scope="row">linear</th>' in page


def test_absurd_times_and_names_are_drawn_too(
    client: TestClient, problem: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Callers may report anything that is a time; imported rows have kernels of any name."""
    monkeypatch.setattr(guard, "_KERNEL", re.compile(".*"))
    for number, seconds in enumerate((0.1, 0.11, 1e-300, 1e6)):
        one = {**problem, "kernel": "<b>$\\frac$", "code": "kernel void f() {}", "args": []}
        device = {"id": "$x^$\x07", "driver": "1"}
        answer = client.post(
            "/v1/observations",
            json={"observations": [
                {"key": str(number), "problem": one, "device": device, "seconds": seconds}
            ]},
        )  # fmt: skip
        assert answer.status_code == 200, answer.text
    page = _show(client)
    assert "&lt;b&gt;$" in page
    assert "<b>$" not in page
    for name in ("launches", "kernels", "drift"):
        assert client.get(f"/accuracy/{name}.svg").text.startswith("<svg")


def test_a_model_that_was_trained_here(client: TestClient, settings: ServiceSettings) -> None:
    """It is listed, with the devices here that it serves."""
    model = make_model("linear").fit(make_rows(kernels=4))
    ModelRegistry(url=str(settings.registry)).publish("linear/device-0", model)
    page = _show(client, "/accuracy/models")
    assert "linear/device-0" in page
    assert "No model serves fake-device-0000" in page


def test_a_damaged_model_is_told_to_a_person(client: TestClient, settings: ServiceSettings) -> None:
    """The rest of the page is there all the same."""
    model = make_model("linear").fit(make_rows(kernels=4))
    version = ModelRegistry(url=str(settings.registry)).publish("linear/x", model)
    file = next(Path(str(settings.registry)).rglob(f"{version}*"))
    file.write_bytes(b"broken")
    page = _show(client)
    assert "A model cannot be read" in page
    assert "holds no observations yet" in page


def test_what_is_unknown_is_told_to_a_person(client: TestClient) -> None:
    """As a page, with the true status."""
    assert "there is no validation" in _show(client, "/accuracy?job=nope", 404)
    assert "source" in _show(client, "/accuracy?source=stars", 422)


_ROWS = st.lists(
    st.builds(
        Judged,
        method=st.sampled_from(["linear", "hybrid"]),
        launch=st.integers(0, 40).map(str),
        kernel=st.sampled_from(["a", "b", "c"]),
        device_id=st.just("d"),
        measured_s=st.floats(5e-324, 1e7),
        seconds=st.floats(5e-324, 1e7),
        when=st.none() | st.integers(0, 10**6).map(lambda one: BEGIN + timedelta(seconds=one)),
    ),
    min_size=1,
    max_size=60,
    unique_by=lambda one: (one.method, one.launch),
)


@given(rows=_ROWS)
def test_every_row_counts_once(rows: list[Judged]) -> None:
    """In the methods' scores, in the kernels' and in the stretches of time."""
    scores = score_methods(rows)
    methods = scores.methods
    assert sum(one.rows + one.beyond for one in methods) == len(rows)
    if scores.common:
        assert {one.rows for one in methods} == {scores.common}
    assert all(one.errors and math.isfinite(one.errors.mean) for one in methods)
    assert all(
        one.errors and one.errors.median <= one.errors.p90 <= one.errors.worst for one in methods
    )
    kernels = score_kernels(rows)
    assert sum(one.rows for one in kernels) == len(rows)
    assert [one.error for one in kernels] == sorted((one.error for one in kernels), reverse=True)
    bins = bin_by_time(rows)
    assert sum(one.rows for one in bins) == sum(one.when is not None for one in rows)
    assert all(one.low <= one.middle <= one.high and one.begin <= one.end for one in bins)


def _score(errors: list[float], **more: Any) -> Any:  # noqa: ANN401 - fields of any kind
    rows = [
        Judged(method="hybrid", launch=str(place), kernel="k", device_id="d", measured_s=1.0,
               seconds=1 + one, **more)
        for place, one in enumerate(errors)
    ]  # fmt: skip
    return score_kernels(rows, {"k": more.pop("linear", 0.01)})[0]


def test_reasons() -> None:
    """Noise, the domain and the samples are told apart."""
    noisy = tell_reasons(_score([0.1, 0.1, 0.1], noise=0.08), "hybrid")
    assert "vary by 8.0 %" in noisy[0]
    strange = tell_reasons(_score([0.5, 0.5, 0.5], in_domain=False), "hybrid")
    assert "3 of 3 launches are unlike" in strange[0]
    assert any("the correction harmed" in one for one in strange)
    few = tell_reasons(_score([0.5]), "hybrid")
    assert any("only 1 launch:" in one for one in few)
    linear = tell_reasons(_score([-0.5, -0.5, -0.5]), "linear")
    assert "too short, 0.50 times" in linear[0]


def test_a_kernel_has_a_page_as_soon_as_it_was_observed(
    client: TestClient, problem: dict[str, Any]
) -> None:
    """However many launches were stored since, and also where no observation counts."""
    report = {"key": "a", "problem": problem, "device": "fake-device-0000", "seconds": 0.5}
    busy = {**report, "problem": {**problem, "kernel": "busy", "code": problem["code"].replace(
        "fill", "busy")}, "is_contaminated": True}  # fmt: skip
    client.post("/v1/observations", json={"observations": [report, busy]})
    assert "Every size and device" in _show(client, "/kernels/of?name=fill")
    assert "No observation of this kernel counts" in _show(client, "/kernels/of?name=busy")
    assert "there is no kernel among the launches" in _show(client, "/kernels/of?name=other", 404)
