"""The page Accuracy: what it shows with data and without, and what it says of errors."""

import csv
import io
import math
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.models.catalogue import make_model
from kernelcast.models.persistence import ModelRegistry
from kernelcast.predictor.reviewing import model_answers
from kernelcast.records.service_state import JobKind
from kernelcast.service import ServiceSettings, guard
from kernelcast.service.pages.accuracy.reasons import tell_reasons
from kernelcast.service.pages.accuracy.scores import (
    Judged,
    bin_by_time,
    score_kernels,
    score_methods,
)
from kernelcast.testing.page_examples import add_job, fill_store, make_validation, state_of
from kernelcast.testing.synthetic_rows import SCHEMA, make_rows

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
        ("answers", "since it started", "/lab"),
    ],
)
def test_without_data_it_says_what_to_do(
    client: TestClient, source: str, told: str, link: str
) -> None:
    """Each source of predictions names the next step."""
    page = _show(client, f"/accuracy?source={source}")
    assert told in page
    assert f'href="{link}"' in page


def test_observations_stand_beside_the_linear_model(
    client: TestClient, settings: ServiceSettings
) -> None:
    """With pictures, their numbers, and the worst kernels."""
    fill_store(str(settings.database))
    page = _show(client, "/accuracy?device=device-1")
    assert "Methods on device-1" in page
    assert "Where linear errs most, and why" in page
    assert page.count('<figure class="picture">') == 3
    numbers = client.get("/accuracy/launches.csv?device=device-1")
    rows = list(csv.DictReader(io.StringIO(numbers.text)))
    assert len(rows) == 10
    assert float(rows[0]["predicted_s"]) > 0
    light, dark = (
        client.get(f"/accuracy/launches.svg?device=device-1&theme={one}").text
        for one in ("light", "dark")
    )
    assert light.startswith("<svg")
    assert light != dark
    assert client.get("/accuracy/kernels.png?device=device-1").content.startswith(b"\x89PNG")
    assert client.get("/accuracy/nothing.svg?device=device-1").status_code == 404


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


def test_answers_of_this_process(client: TestClient, problem: dict[str, Any]) -> None:
    """What was answered and then observed is compared by the answer's tier."""
    client.post("/v1/estimates", json={"problem": problem, "devices": ["fake"]})
    client.post(
        "/v1/observations",
        json={"observations": [
            {"key": "1", "problem": problem, "device": "fake-device-0000", "seconds": 0.02}
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
    for number, seconds in enumerate((0.1, 1e-300, 1e6)):
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
    """It is listed; without a validation it says so."""
    model = make_model("linear").fit(make_rows(kernels=4))
    ModelRegistry(url=str(settings.registry)).publish("linear/device-0", model, SCHEMA)
    page = _show(client)
    assert "linear/device-0" in page
    assert "not validated" in page


def test_a_damaged_model_is_told_to_a_person(client: TestClient, settings: ServiceSettings) -> None:
    """The rest of the page is there all the same."""
    model = make_model("linear").fit(make_rows(kernels=4))
    version = ModelRegistry(url=str(settings.registry)).publish("linear/x", model, SCHEMA)
    file = next(Path(str(settings.registry)).rglob(f"{version}*"))
    file.write_bytes(b"broken")
    page = _show(client)
    assert "A model cannot be read" in page
    assert "holds no observations yet" in page


def test_the_validation_of_a_job(client: TestClient) -> None:
    """All its models can be chosen; the linear model's errors stand beside."""
    job_id = add_job(state_of(client), JobKind.VALIDATE, result=make_validation())
    page = _show(client, f"/accuracy?job={job_id}&method=hybrid")
    assert "Where hybrid errs most, and why" in page
    assert "hybrid_without_analytic" in page
    assert f"/comparing?of={job_id}" in page
    numbers = client.get(f"/accuracy/kernels.csv?job={job_id}&method=hybrid").text
    assert all(float(one["linear_mean_error"]) for one in csv.DictReader(io.StringIO(numbers)))


def test_what_is_unknown_is_told_to_a_person(client: TestClient) -> None:
    """As a page, with the true status."""
    assert "there is no validation" in _show(client, "/accuracy?job=nope", 404)
    assert "source" in _show(client, "/accuracy?source=stars", 422)


_ROWS = st.lists(
    st.builds(
        Judged,
        method=st.sampled_from(["linear", "hybrid"]),
        kernel=st.sampled_from(["a", "b", "c"]),
        device_id=st.just("d"),
        measured_s=st.floats(5e-324, 1e7),
        seconds=st.floats(5e-324, 1e7),
        when=st.none() | st.integers(0, 10**6).map(lambda one: BEGIN + timedelta(seconds=one)),
    ),
    min_size=1,
    max_size=60,
)


@given(rows=_ROWS)
def test_every_row_counts_once(rows: list[Judged]) -> None:
    """In the methods' scores, in the kernels' and in the stretches of time."""
    methods = score_methods(rows)
    assert sum(one.rows for one in methods) == len(rows)
    assert all(math.isfinite(one.mean) for one in methods)
    assert all(one.median <= one.p90 <= one.worst for one in methods)
    kernels = score_kernels(rows)
    assert sum(one.rows for one in kernels) == len(rows)
    assert [one.error for one in kernels] == sorted((one.error for one in kernels), reverse=True)
    bins = bin_by_time(rows)
    assert sum(one.rows for one in bins) == sum(one.when is not None for one in rows)
    assert all(one.low <= one.middle <= one.high and one.begin <= one.end for one in bins)


def _score(errors: list[float], **more: Any) -> Any:  # noqa: ANN401 - fields of any kind
    rows = [
        Judged(method="hybrid", kernel="k", device_id="d", measured_s=1.0, seconds=1 + one, **more)
        for one in errors
    ]
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
