"""The API of `kernelcast serve`: every route, who may call it, and how it refuses."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from kernelcast import KernelcastError
from kernelcast.client import Client, ServiceError, read_problem_file
from support.running_service import (
    ROWS_DEVICE,
    SCALE,
    SCOPES,
    ServiceProcess,
    choose_device,
    command,
    list_children,
    make_token,
    serve_rows,
    wait_until,
)

pytestmark = [pytest.mark.device, pytest.mark.timeout(600)]

Plain = dict[str, Any]
REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "openapi.yaml"
OPEN = {"GET /health", "GET /ready"}
FAR = {"id": "far-away", "name": "far", "platform": "there", "driver": "1"}
TRAINING = {"kind": "train", "options": {"model": "linear", "validate": False}}


class Api:
    """Calls routes by the names they have in the description: `GET /v1/jobs/{job_id}`."""

    def __init__(self, data: Path, url: str, administrator: Plain) -> None:
        self.data = data
        self.url = url
        self.administrator = administrator
        self.tokens = {scope: str(make_token(data, scope, [scope])["token"]) for scope in SCOPES}
        self.tokens["all"] = administrator["token"]
        self.http = httpx.Client(base_url=url, timeout=240)
        self.device = choose_device(one["id"] for one in self.call("GET /v1/devices")["devices"])

    def send(
        self, operation: str, *, token: str | None = "all", names: Plain | None = None,
        **options: Any,  # noqa: ANN401 - httpx's
    ) -> httpx.Response:  # fmt: skip
        """Send a request with one of the tokens, or with none."""
        method, _, path = operation.partition(" ")
        headers = {} if token is None else {"authorization": f"Bearer {self.tokens[token]}"}
        headers |= options.pop("headers", {})
        return self.http.request(method, path.format(**names or {}), headers=headers, **options)

    def call(self, operation: str, json: object = None, **options: Any) -> Any:  # noqa: ANN401 - JSON
        """Send a request that is answered; give the answer."""
        answer = self.send(operation, json=json, **options)
        assert answer.is_success, answer.text
        return answer.json()

    def refuse(self, status: int, code: str, operation: str, **options: Any) -> Plain:  # noqa: ANN401 - httpx's
        """Send a request that is refused in the one shape; give the error."""
        answer = self.send(operation, **options)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        content = answer.json()
        error: Plain = content["error"]
        assert content["type"] == f"urn:kernelcast:error:{code}"
        assert content["title"]
        assert (content["status"], content["detail"]) == (status, error["message"])
        assert set(error) == {"code", "message", "detail"}
        assert error["code"] == code
        assert error["message"]
        return error

    def follow(self, job: Plain) -> list[tuple[str, Plain]]:
        """Read the events of a job until it ends: their names and the job each holds."""
        text = self.send("GET /v1/jobs/{job_id}/events", names={"job_id": job["id"]}).text
        found = re.findall(r"^event: (\w+)\n(?:id: \d+\n)?data: (.*)$", text, re.MULTILINE)
        return [(event, json.loads(content)) for event, content in found]

    def list_operations(self) -> set[str]:
        """Name all routes of the description that the service gives."""
        described = self.send("GET /v1/openapi.json").json()
        return {
            f"{method.upper()} {path}"
            for path, methods in described["paths"].items()
            for method in methods
        }


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Serve a store with observations; two trainings begin at once."""
    with serve_rows(tmp_path_factory.mktemp("http") / "data") as (service, token):
        made = Api(service.data, service.url, token)
        for _ in range(2):
            made.call("POST /v1/jobs", TRAINING)
        yield made
        made.http.close()
        assert service.stop() == 0
        messages = [line["message"] for line in service.read_log()]
        assert {"service starts", "request", "service has stopped"} <= {*messages}
        text = service.log.read_text(encoding="utf-8")
        assert "Traceback" not in text
        assert not [secret for secret in made.tokens.values() if secret in text]


@pytest.fixture(scope="module")
def trained(api: Api) -> str:
    """Name the model that the trainings have published twice."""

    jobs = wait_until(
        lambda: api.call("GET /v1/jobs", params={"kind": "train"})["jobs"],
        lambda jobs: all(job["state"] not in {"queued", "running"} for job in jobs),
    )
    assert [job["state"] for job in jobs] == ["done", "done"]
    return f"linear/{ROWS_DEVICE}"


def test_the_description_is_the_reference(api: Api) -> None:
    """A service gives the committed description, of whose routes each is called in this file."""
    told = api.send("GET /v1/openapi.json", token=None).json()
    reference = yaml.safe_load(REFERENCE.read_text(encoding="utf-8"))
    del reference["info"]["x-content-digest"]
    assert told == reference
    called = re.findall(r'"((?:GET|POST|PUT|PATCH|DELETE) /[^"]*)"', Path(__file__).read_text())
    assert set(called) - {"GET /v1/openapi.json", "GET /v1/nothing"} == api.list_operations()
    for methods in told["paths"].values():
        for route in methods.values():
            assert route["description"]
            for status in ("4XX", "422", "503"):
                ((kind, content),) = route["responses"][status]["content"].items()
                assert kind == "application/problem+json"
                assert content["schema"] == {"$ref": "#/components/schemas/ErrorAnswer"}


def test_the_service_says_who_it_is_and_what_it_counts(api: Api) -> None:
    """Health and readiness need no token; answers name the instance; counts grow with requests."""
    health = api.call("GET /health", token=None)
    assert health["status"] == "ok"
    assert health["service"] == "kernelcast"
    assert health["refine_share"] == 0
    ready = api.call("GET /ready", token=None)
    assert ready["status"] == "ready"
    assert ready["devices"] >= 1
    assert ready["sandbox"] in {"bubblewrap", "none"}
    answer = api.send("GET /v1/machines", headers={"x-request-id": "mine"})
    assert answer.headers["x-kernelcast-instance"] == health["instance"]
    assert answer.headers["x-request-id"] == "mine"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "private, no-cache"
    assert api.send("GET /v1/jobs").headers["cache-control"] == "no-store"
    for path in ("/health", "/ready", "/assets/style.css"):
        head, whole = api.http.head(path), api.http.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == whole.headers["content-type"]
    line = 'kernelcast_http_requests_total{method="GET",route="/v1/machines",status="200"}'
    counts = []
    for _ in range(2):
        text = api.send("GET /metrics", token="observe").text
        counts.append(float(re.findall(rf"^{re.escape(line)} (.*)$", text, re.MULTILINE)[0]))
        api.call("GET /v1/machines")
    assert counts[1] == counts[0] + 1
    assert re.search(r'^kernelcast_jobs\{state="failed"\} ', text, re.MULTILINE)


def test_devices_and_machine_descriptions(api: Api) -> None:
    """Devices are found by the beginning of their id, machines by their name, others not at all."""
    device = api.call("GET /v1/devices/{device_id}", names={"device_id": api.device[:-2]})
    assert device["id"] == api.device
    assert device["compute_units"] >= 1
    assert not device["is_calibrated"]
    machines = api.call("GET /v1/machines")["machines"]
    assert {"name": "v100", "is_shipped": True} in machines
    answer = api.send("GET /v1/machines/{name}", names={"name": "v100"})
    assert "V100" in answer.json()["machine"]["name"]
    assert answer.headers["content-encoding"] == "gzip"
    known = {"if-none-match": answer.headers["etag"]}
    again = api.send("GET /v1/machines/{name}", names={"name": "v100"}, headers=known)
    assert (again.status_code, again.content) == (304, b"")
    error = api.refuse(
        404, "unknown_device", "GET /v1/devices/{device_id}", names={"device_id": "no"}
    )
    assert api.device in error["message"]
    for name in ("nothing", "..%2f..%2fv100", "/etc/passwd"):
        api.refuse(404, "unknown_machine" if name == "nothing" else "not_found",
                   "GET /v1/machines/{name}", names={"name": name})  # fmt: skip


def test_a_problem_is_sent_once_and_named_by_its_digest(api: Api) -> None:
    """The digest shows the problem, and asks for an estimate in its place."""
    sent = api.call("POST /v1/problems", SCALE)
    assert sent["kernel"] == sent["name"] == "scale"
    assert sent["buffer_bytes"] == 2 * 4 * 65536
    digest = sent["problem_digest"]
    assert api.call("GET /v1/problems/{digest}", names={"digest": digest}) == sent
    asked = {"problem_digest": digest, "devices": [api.device]}
    (answer,) = api.call("POST /v1/estimates", asked)["estimates"]
    assert answer["problem_digest"] == digest
    api.refuse(404, "unknown_problem", "GET /v1/problems/{digest}", names={"digest": "0" * 64})


def test_estimates(api: Api) -> None:
    """Time, interval and evidence; a repeat is the kept answer; several problems at once."""
    asked: Plain = {"problem": {**SCALE, "global_size": [32768]}, "devices": [api.device]}
    (first,) = api.call("POST /v1/estimates", asked)["estimates"]
    assert not first["is_kept"]
    assert 0 < first["low"] <= first["seconds"] <= first["high"]
    assert first["coverage"] == 0.9
    assert first["tier"] in {"linear", "hybrid", "sizes", "analytic"}
    assert first["sampled_work_groups"] > 0
    assert first["work_groups"] == 512
    assert first["explanation"]["tier"] == first["tier"]
    assert first["cost"]["seconds"] > 0
    (again,) = api.call("POST /v1/estimates", asked)["estimates"]
    assert again == {**first, "is_kept": True}
    (narrow,) = api.call("POST /v1/estimates", {**asked, "coverage": 0.5})["estimates"]
    assert narrow["high"] / narrow["low"] < first["high"] / first["low"]
    problems = [{"problem": asked["problem"]}, {"problem": {**SCALE, "name": "other"}}]
    both = api.call("POST /v1/estimates", {"problems": problems, "devices": [api.device]})
    assert [answer["problem"] for answer in both["estimates"]] == ["scale", "other"]


def test_what_a_device_cannot_answer_is_said(api: Api) -> None:
    """Kernels that crash, do not compile or do not fit; what may not be run is not run."""
    stray = "kernel void scale(global int *a) { a[(size_t)get_global_id(0) << 40] = 1; }"
    buffer = {"buffer": "int32", "count": 64}
    for changes, code, told in (
        ({"global_size": [100]}, "device_limit", "pad the global size to 128"),
        ({"kernel": "other"}, "kernel_not_found", "its kernels are: scale"),
        ({"code": SCALE["code"].replace("fma", "fmaa")}, "compile_error", "fmaa"),
        ({"code": stray, "args": [buffer]}, "kernel_crashed", "outside its buffers"),
    ):
        asked = {"problem": {**SCALE, **changes}, "devices": [api.device]}
        error = api.refuse(422, code, "POST /v1/estimates", json=asked)
        assert told in error["message"]
        assert error["detail"]["estimates"][0]["error"]["code"] == code
    new = {"problem": {**SCALE, "name": "new", "global_size": [16384]}, "devices": [api.device]}
    never = {**new, "sampling": "never"}
    error = api.refuse(422, "device_cannot_answer", "POST /v1/estimates", json=never)
    assert "kernelcast calibrate" in error["message"]
    api.refuse(403, "missing_scope", "POST /v1/estimates", json=new, token="estimate")


def test_observations_answer_and_can_be_taken_back(api: Api) -> None:
    """Each key counts once, what repeats is the answer; an administrator removes and corrects."""
    problem = {**SCALE, "global_size": [8192], "name": "observed"}
    digest = api.call("POST /v1/problems", problem)["problem_digest"]
    asked = {"problem_digest": digest, "devices": [api.device]}
    (sampled,) = api.call("POST /v1/estimates", asked)["estimates"]
    told_s = 1.2 * sampled["seconds"]
    batch = [
        {"key": f"run-{number}", "problem_digest": digest, "device": api.device, "seconds": told_s}
        for number in range(3)
    ]
    assert api.call("POST /v1/observations", {"observations": batch})["added"] == 3
    assert api.call("POST /v1/observations", {"observations": batch})["known"] == 3
    (answer,) = wait_until(
        lambda: api.call("POST /v1/estimates", asked)["estimates"],
        lambda answers: answers[0]["tier"] == "history",
    )
    assert answer["seconds"] == pytest.approx(told_s, rel=0.01)
    other = {"observations": [{**batch[0], "seconds": 2 * told_s}]}
    error = api.refuse(409, "key_used_otherwise", "POST /v1/observations", json=other)
    assert error["detail"]["key"] == "run-0"
    impossible = {**batch[0], "key": "typo", "seconds": 1e-12}
    (doubt,) = api.call("POST /v1/observations", {"observations": [impossible]})["doubted"]
    assert doubt["key"] == "typo"
    assert "impossible" in doubt["reason"]
    far = [{**batch[0], "device": FAR}, {**batch[0], "device": "nothing", "key": "other"}]
    api.refuse(404, "unknown_device", "POST /v1/observations", json={"observations": far})
    query = {"device": "far-away"}
    assert api.call("GET /v1/observations", params=query)["count"] == 0  # all or nothing
    api.call("POST /v1/observations", {"observations": far[:1]})
    (row,) = api.call("GET /v1/observations", params=query)["observations"]
    assert (row["measurement"], row["origin"], row["flags"]) == ("run-0", "observed", [])
    assert row["seconds"] == pytest.approx(told_s)
    names = {"key": row["key"]}
    change = {"seconds": 0.5, "is_contaminated": True}
    changed = api.call("PATCH /v1/observations/{key}", change, names=names)
    assert (changed["seconds"], changed["flags"]) == (0.5, ["contaminated"])
    removed = api.call("DELETE /v1/observations/{key}", names=names)
    assert removed["removed"] == 1
    api.refuse(404, "unknown_observation", "DELETE /v1/observations/{key}", names=names)
    query = {"kernel": "scale", "measurement": ["run-0", "run-1", "run-2", "typo"]}
    error = api.refuse(
        422, "unknown_parameter", "DELETE /v1/observations", params={**query, "dryrun": "true"}
    )
    assert "'dryrun' (did you mean 'dry_run'?)" in error["message"]
    shown = api.call("DELETE /v1/observations", params={**query, "dry_run": "true"})
    assert (shown["count"], shown["removed"], shown["is_dry_run"]) == (4, 0, True)
    assert api.call("GET /v1/observations", params=query)["count"] == 4
    api.refuse(422, "invalid_input", "DELETE /v1/observations")
    assert api.call("DELETE /v1/observations", params=query)["removed"] == 4
    assert api.call("GET /v1/observations", params={"kernel": "nbody"})["count"] == 2
    wait_until(
        lambda: api.call("POST /v1/estimates", asked)["estimates"],
        lambda answers: answers[0]["tier"] != "history",
    )
    entries = api.call("GET /v1/audit", params={"most": 3})["entries"]
    assert [entry["actor"] for entry in entries] == [api.administrator["id"]] * 3
    assert "4 observations" in [entry["subject"] for entry in entries]
    text = api.send("GET /metrics").text
    assert 'kernelcast_observations_total{outcome="added"} 5.0' in text


def test_answers_are_kept_and_compared(api: Api) -> None:
    """Each with what was observed then; error, coverage and cost by device, tier and week."""
    problem = {**SCALE, "global_size": [4096], "name": "remembered"}
    asked: Plain = {"problem": problem, "devices": [api.device]}
    time.sleep(1.5)  # changes that other tests made are seen within a second; answers then go
    for _ in range(3):
        (answer,) = api.call("POST /v1/estimates", asked)["estimates"]
    report = {"key": "seen", "problem": problem, "device": api.device,
              "seconds": answer["seconds"]}  # fmt: skip
    api.call("POST /v1/observations", {"observations": [report]})
    (kept,) = [
        one
        for one in api.call("GET /v1/answers", params={"kernel": "scale"})["answers"]
        if one["problem"] == "remembered"
    ]
    assert (kept["seconds"], kept["low"], kept["asked"]) == (answer["seconds"], answer["low"], 3)
    assert kept["cost_s"] == pytest.approx(answer["cost"]["seconds"])
    seen = wait_until(
        lambda: api.call("GET /v1/answers", params={"observed": "true"})["answers"],
        lambda answers: kept["id"] in [one["id"] for one in answers],
    )
    (compared,) = [one for one in seen if one["id"] == kept["id"]]
    assert compared["measured_s"] == answer["seconds"]
    assert compared["error"] == pytest.approx(answer["now"]["slowdown"] - 1 if answer["now"] else 0)
    both: list[Plain] = []
    cursor: str | None = None
    while cursor is not None or not both:
        params = {"limit": 2} | ({} if cursor is None else {"next": cursor})
        part = api.call("GET /v1/answers", params=params)
        both, cursor = [*both, *part["answers"]], part["next"]
    assert both == api.call("GET /v1/answers", params={"limit": 1000})["answers"]
    api.refuse(422, "invalid_request", "GET /v1/answers", params={"next": "9" * 30})
    rows = api.call("GET /v1/accuracy", params={"by": ["device", "tier", "week"]})["rows"]
    assert {row["device_id"] for row in rows} == {api.device}
    assert sum(row["observed"] for row in rows) >= 1
    assert all(row["cost_s"] is None or row["cost_s"] >= 0 for row in rows)


def test_unknown_parameters_are_refused_on_every_route(api: Api) -> None:
    """422 names the parameter, all that the route takes and the nearest; nothing is done."""
    described = api.send("GET /v1/openapi.json").json()["paths"]
    api.call("POST /v1/estimates", {"problem": SCALE, "devices": [api.device]})
    jobs = api.call("GET /v1/jobs")["jobs"]
    for operation in api.list_operations():
        method, _, path = operation.partition(" ")
        route = described[path][method.lower()]
        known = [one["name"] for one in route.get("parameters", ()) if one["in"] == "query"]
        names = dict.fromkeys(re.findall(r"\{(\w+)\}", path), "x")
        # The body of a request that was answered before is not answered without a look.
        asked = {"problem": SCALE, "devices": [api.device]}
        body = {"json": asked} if operation == "POST /v1/estimates" else {}
        error = api.refuse(
            422, "unknown_parameter", operation, params={"mosst": "1"}, names=names, **body
        )
        assert "'mosst'" in error["message"]
        assert error["detail"]["unknown"] == ["mosst"]
        assert error["detail"]["known"] == sorted(known)
        assert error["detail"]["nearest"] == ({"mosst": "most"} if "most" in known else {})
    assert len(api.call("GET /v1/jobs")["jobs"]) == len(jobs)


def test_tokens_and_scopes(api: Api) -> None:
    """Without a token only health is told; a scope opens its routes; a revoked token opens none."""
    for operation in api.list_operations() - OPEN:
        names = dict.fromkeys(re.findall(r"\{(\w+)\}", operation), "x")
        answer = api.send(operation, token=None, names=names)
        assert answer.status_code == 401, operation
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"]["code"] == "unauthorized"
    observation = {"key": "a", "problem": SCALE, "device": FAR, "seconds": 1.0}
    for scope, operation, body, names in (
        ("estimate", "GET /v1/jobs", None, {}),
        ("estimate", "GET /v1/models", None, {}),
        ("observe", "POST /v1/observations", {"observations": [observation]}, {}),
        ("admin", "GET /v1/audit", None, {}),
        ("admin", "DELETE /v1/observations/{key}", None, {"key": "nothing"}),
        ("admin", "PATCH /v1/observations/{key}", {"seconds": 1.0}, {"key": "nothing"}),
        ("admin", "POST /v1/jobs/{job_id}/cancel", None, {"job_id": "nothing"}),
        ("admin", "POST /v1/models/{name}/rollback", None, {"name": "nothing"}),
    ):
        opened = api.send(operation, token=scope, json=body, names=names)
        assert opened.status_code in {200, 404}, opened.text
        for other in set(SCOPES) - {scope}:
            error = api.refuse(403, "missing_scope", operation, token=other, json=body, names=names)
            assert error["detail"] == {"scope": scope}
    api.call("DELETE /v1/observations", params={"device": "far-away"})
    made = make_token(api.data, "brief", ["estimate"])
    api.tokens["brief"] = made["token"]
    api.call("GET /v1/jobs", token="brief")
    database = ("--database", api.data / "observations.sqlite")
    assert made["id"] in command("serve", "token", "list", *database)
    command("serve", "token", "revoke", made["id"], *database)
    wait_until(
        lambda: api.send("GET /v1/jobs", token="brief").status_code, lambda status: status == 401
    )
    wrong = {"authorization": f"Bearer {api.tokens['all'][:-4]}AAAA"}
    for _ in range(20):
        last = api.send("GET /v1/jobs", token=None, headers=wrong)
    assert last.status_code == 429
    assert int(last.headers["retry-after"]) > 0
    api.call("GET /v1/jobs", token="estimate")  # a right one opens all the same


def test_bad_input_is_refused_in_one_shape(api: Api) -> None:
    """The mistakes that callers make most have their status and code, and are told what to do."""
    json_type = {"content-type": "application/json"}
    estimates = "POST /v1/estimates"
    with_file = [{"buffer": "float32", "count": 4, "init": "file"}]
    for status, code, operation, options, told in (
        (404, "not_found", "GET /v1/nothing", {}, "Not Found"),
        (422, "invalid_request", estimates, {"content": b"{", "headers": json_type}, "JSON"),
        (422, "invalid_request", estimates, {"json": {"problem": SCALE, "devces": []}}, "devces"),
        (422, "invalid_request", estimates, {"json": {"problem": {**SCALE, "source": "a.cl"}}},
         "give the text as `code`"),
        (422, "invalid_input", estimates,
         {"json": {"problem": {**SCALE, "code": '#include "a.h"\n' + SCALE["code"]}}}, "#include"),
        (422, "invalid_input", estimates,
         {"json": {"problem": {**SCALE, "build_options": ["-I/etc"]}}}, "-D NAME=VALUE"),
        (422, "invalid_problem", estimates, {"json": {"problem": {**SCALE, "args": with_file}}},
         "init"),
        (404, "unknown_device", estimates, {"json": {"problem": SCALE, "devices": ["no"]}},
         api.device),
        (413, "too_many_problems", estimates, {"json": {"problems": [{"problem": SCALE}] * 65}},
         "at most 64"),
        (422, "invalid_request", "GET /v1/jobs", {"params": {"state": "odd"}}, "state"),
        (422, "invalid_request", "POST /v1/jobs", {"json": {"kind": "dance"}}, "collect"),
        (422, "invalid_input", "POST /v1/jobs",
         {"json": {"kind": "collect", "options": {"kernels": ["no"]}}}, "kernelcast corpus ls"),
        (422, "invalid_input", "POST /v1/comparisons",
         {"json": {"first": "linear", "second": "linear"}}, "name two different models"),
        (421, "wrong_host", "GET /v1/jobs", {"headers": {"host": "elsewhere.example"}},
         "127.0.0.1"),
        (403, "wrong_origin", "POST /v1/jobs",
         {"json": TRAINING, "headers": {"origin": "https://elsewhere.example"}}, "elsewhere"),
    ):  # fmt: skip
        error = api.refuse(status, code, operation, **options)
        assert told in error["message"]
    refused = api.http.put("/v1/jobs")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, POST, HEAD")


def test_a_job_is_started_once_followed_and_cancelled(api: Api, trained: str) -> None:
    """By its key; its events end with it, its result comes when it is done, others say why not."""
    key = {"idempotency-key": "nightly"}
    asked = {**TRAINING, "options": {"model": "linear", "validate": False, "devices": ["far"]}}
    answer = api.send("POST /v1/jobs", json=asked, headers={**key, "x-request-id": "r-1"})
    assert answer.status_code == 202
    job = answer.json()
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    entry = api.call("GET /v1/audit")["entries"][0]
    assert (entry["action"], entry["subject"], entry["request_id"]) == (
        "start_job", job["id"], "r-1",
    )  # fmt: skip
    assert api.call("POST /v1/jobs", asked, headers=key)["id"] == job["id"]
    error = api.refuse(409, "key_used_otherwise", "POST /v1/jobs", json=TRAINING, headers=key)
    assert error["detail"] == {"job_id": job["id"]}
    *_, (event, last) = api.follow(job)
    assert (event, last["state"]) == ("end", "failed")
    assert "no sampled observations" in last["error"]["message"]
    names = {"job_id": job["id"]}
    assert api.call("GET /v1/jobs/{job_id}", names=names) == last
    error = api.refuse(409, "job_not_done", "GET /v1/jobs/{job_id}/result", names=names)
    assert error["detail"]["state"] == "failed"
    (done, _) = api.call("GET /v1/jobs", params={"state": "done", "kind": "train"})["jobs"]
    assert api.follow(done) == [("end", done)]
    assert (done["progress"]["done"], done["has_result"]) == (1, True)
    result = api.call("GET /v1/jobs/{job_id}/result", names={"job_id": done["id"]})["result"]
    schemas = api.send("GET /v1/openapi.json").json()["components"]["schemas"]
    assert set(result) == set(schemas["TrainResult"]["properties"])
    (model,) = result["models"]
    assert set(model) == set(schemas["PublishedModel"]["properties"])
    assert (model["name"], model["devices"]) == (trained, [ROWS_DEVICE])
    assert model["rows"] > 40
    compared = {"first": "linear", "second": "ridge", "resamples": 1000}
    comparison = api.call("POST /v1/comparisons", compared)
    assert (comparison["kind"], comparison["options"]) == ("compare", compared)
    assert [job["id"] for job in api.call("GET /v1/comparisons")["jobs"]] == [comparison["id"]]
    names = {"job_id": comparison["id"]}
    api.call("POST /v1/jobs/{job_id}/cancel", names=names)
    assert api.follow(comparison)[-1][1]["state"] == "cancelled"
    api.refuse(404, "unknown_job", "GET /v1/jobs/{job_id}", names={"job_id": "nothing"})


def test_models_are_listed_chosen_and_rolled_back(api: Api, trained: str) -> None:
    """Estimates use the newest version unless an administrator chose another."""
    names = {"name": trained}
    model = api.call("GET /v1/models/{name}", names=names)
    first, second = model["versions"]
    assert (model["used"], model["latest"], model["pinned"]) == (second, second, None)
    listed = api.call("GET /v1/models")
    assert model in listed["models"]
    used = {"name": trained, "version": second, "is_shipped": False}
    assert used in listed["in_use"]
    report = api.call("GET /v1/models/{name}/report", names=names, params={"version": first[:4]})
    assert report["version"] == first
    assert "sampled.run_s" in report["features"]
    assert report["validation"] is None
    error = api.refuse(
        422, "invalid_input", "GET /v1/models/{name}/report", names=names,
        params={"version": "0009"},
    )  # fmt: skip
    assert second in error["message"] or "0009" in error["message"]
    chosen = api.call("POST /v1/models/{name}/activate", {"version": first}, names=names)
    assert chosen["used"] == chosen["pinned"] == first
    freed = api.call("POST /v1/models/{name}/activate", {"version": None}, names=names)
    assert (freed["used"], freed["pinned"]) == (second, None)
    assert api.call("POST /v1/models/{name}/rollback", names=names)["used"] == first
    api.refuse(422, "invalid_input", "POST /v1/models/{name}/rollback", names=names)
    api.refuse(404, "unknown_model", "GET /v1/models/{name}", names={"name": "nothing"})
    evidence = {"name": f"evidence/{ROWS_DEVICE}"}  # it weighs answers, and gives none alone
    assert api.call("GET /v1/models/{name}", names=evidence)["used"]
    api.refuse(404, "unknown_report", "GET /v1/models/{name}/report", names=evidence)
    actions = [entry["action"] for entry in api.call("GET /v1/audit")["entries"]]
    assert {"activate_model", "roll_back_model", "start_job", "cancel_job"} <= set(actions)


def test_the_client_does_all_of_it(api: Api, trained: str, tmp_path: Path) -> None:
    """Devices, estimates, observations, jobs and models, as records; refusals as `ServiceError`.

    A problem file becomes a problem with its source.
    """
    (tmp_path / "scale.cl").write_text(SCALE["code"])
    content = {name: value for name, value in SCALE.items() if name not in {"code", "name"}}
    (tmp_path / "scale.yaml").write_text(yaml.safe_dump({"source": "scale.cl", **content}))
    with pytest.raises(KernelcastError, match=r"none\.yaml"):
        read_problem_file(tmp_path / "none.yaml")
    with Client(api.url, token=api.tokens["all"]) as client:
        assert client.identify().api == api.call("GET /health")["api"]
        assert api.device in [device.id for device in client.devices()]
        digest = client.send_problem(read_problem_file(tmp_path / "scale.yaml"))
        (answer,) = client.estimate(SCALE, devices=[api.device])
        assert (answer.problem_digest, answer.error) == (digest, None)
        both = client.estimate_many([digest, SCALE], devices=[api.device], coverage=0.8)
        assert [one.coverage for one in both] == [0.8, 0.8]
        report = {"problem_digest": digest, "device": FAR, "seconds": 0.1}
        told = client.observe([report, report, {**report, "key": "k", "seconds": 1e-12}])
        assert told.added == 3
        assert "impossible" in told.doubted["k"]
        (row,) = client.observations(device="far-away", measurement=["k"])
        fixed = client.correct_observation(row.key, seconds=0.2, is_contaminated=True)
        assert (fixed.seconds, fixed.flags) == (0.2, ("contaminated", "doubted"))
        assert client.remove_observations(device="far-away", dry_run=True) == 3
        assert client.remove_observation(row.key).key == row.key
        assert client.remove_observations(device="far-away") == 2
        assert answer.seconds in [one.seconds for one in client.answers(kernel="scale")]
        assert list(client.answers_frame(kernel="scale")["kernel"].unique()) == ["scale"]
        assert api.device in set(client.accuracy("device", "week")["device_id"])
        assert "v100" in [one.name for one in client.machines()]
        assert "V100" in client.machine("v100")["name"]
        (version, _) = next(one.versions for one in client.models() if one.name == trained)
        assert client.model_report(trained, version)["version"] == version
        assert client.activate_model(trained, version).pinned == version
        assert client.activate_model(trained, None).pinned is None
        job = client.start_job("train", {"devices": ["far-away"]}, key="client")
        assert client.start_job("train", {"devices": ["far-away"]}, key="client").id == job.id
        client.cancel_job(job.id)
        *_, last = client.follow_job(job.id)
        assert last.is_over
        assert client.job(job.id) == last
        comparison = client.compare("linear", "ridge", resamples=100)
        assert comparison.id in [one.id for one in client.comparisons()]
        assert client.cancel_job(comparison.id).kind == "compare"
        (done, _) = client.jobs(kind="train", state="done")
        assert client.job_result(done.id)["models"][0]["name"] == trained
        with pytest.raises(ServiceError, match="its result comes when it is done") as refused:
            client.job_result(job.id)
        assert (refused.value.status, refused.value.code) == (409, "job_not_done")
        assert refused.value.request_id
        assert issubclass(refused.type, KernelcastError)
    with Client(api.url) as stranger, pytest.raises(ServiceError) as refused:
        stranger.devices()
    assert refused.value.status == 401


def test_workers_come_up_on_a_slow_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports longer than 5 s kill none; all share a port, one that dies is replaced, all end."""
    slow = tmp_path / "slow"
    slow.touch()
    (tmp_path / "sitecustomize.py").write_text(
        "import pathlib, sys, time\n"
        "if 'multiprocessing.spawn' in str(sys.orig_argv):\n"
        f"    time.sleep(6 * pathlib.Path({str(slow)!r}).exists())\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    token = make_token(tmp_path / "data", "all")["token"]
    http = httpx.Client(headers={"authorization": f"Bearer {token}"}, timeout=240)

    def list_workers() -> list[int]:
        children = list_children(service.pid).items()
        return [pid for pid, line in children if "spawn_main" in line]

    def count_starts() -> int:
        return sum(line["message"] == "service starts" for line in service.read_log())

    options = ("--workers", "2", "--no-jobs", "--host", "0.0.0.0")
    with http, ServiceProcess(tmp_path / "data", *options) as service:
        wait_until(count_starts, lambda count: count == 2)
        assert not [line for line in service.read_log() if line["message"].endswith("died")]
        slow.unlink()
        jobs = f"{service.url}/v1/jobs"
        assert httpx.get(jobs, timeout=240).status_code == 401  # not on loopback: nobody is trusted
        for _ in range(10):  # each a connection of its own, perhaps to another process
            headers = {**http.headers, "connection": "close"}
            assert http.get(jobs, headers=headers).json() == {"jobs": []}
        text = http.get(f"{service.url}/metrics").text
        assert 'requests_total{method="GET",route="/v1/jobs",status="200"} 10.0' in text
        workers = list_workers()
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)
        wait_until(list_workers, lambda pids: len({*pids} - {workers[0]}) == 2)
        assert http.get(jobs).is_success
        processes = list_children(service.pid)
        os.kill(service.pid, signal.SIGKILL)  # nothing outlives it, and keeps its port
        wait_until(
            lambda: [pid for pid in processes if Path(f"/proc/{pid}").exists()],
            lambda left: not left,
        )


def test_a_port_that_is_taken_is_told(tmp_path: Path, api: Api) -> None:
    """With the instance that has it and the exit status 1, before anything is opened."""
    done = subprocess.run(
        [sys.executable, "-m", "kernelcast", "serve", "--port", api.url.rpartition(":")[2]],
        env={**os.environ, "KERNELCAST_DATA": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"instance {api.call('GET /health')['instance']}" in done.stderr
    assert "Traceback" not in done.stderr
