"""The web pages of `kernelcast serve`: what each shows, its charts, its forms, who may see it."""

import html
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from support.running_service import (
    ROWS_DEVICE,
    ROWS_KERNEL,
    SCALE,
    choose_device,
    make_token,
    serve_rows,
    wait_until,
)

pytestmark = [pytest.mark.device, pytest.mark.timeout(600)]

Fields = Mapping[str, str | Sequence[str]]
HEADINGS = {
    "/": ("Home", "kernelcast"),
    "/lab": ("Lab", "Lab"),
    "/devices": ("Devices", "Devices"),
    "/devices/compared?machine=a100&machine=v100": ("Devices compared", "Devices compared"),
    "/devices/machines/v100": ("Tesla V100-PCIE-32GB", "Tesla V100-PCIE-32GB"),
    "/accuracy": ("Accuracy", "Accuracy"),
    "/accuracy/compare": ("Compare", "Accuracy"),
    "/accuracy/models": ("Models", "Accuracy"),
    "/kernels": ("Kernels", "Kernels"),
    "/kernels/devices": ("Kernels by device", "Kernels"),
    f"/kernels/of?name={ROWS_KERNEL}": (ROWS_KERNEL, ROWS_KERNEL),
    "/jobs": ("Jobs", "Jobs"),
    "/audit": ("Audit log", "Audit log"),
    "/docs": ("API", "API"),
}
LAB: Fields = {
    "code": SCALE["code"],
    "kernel": "scale",
    "parameters": "N = 65536",
    "global_size": "{N}",
    "local_size": "64",
    "args": 'buffer: float32, count: "{N}", init: uniform\n'
    'buffer: float32, count: "{N}"\nscalar: float32, value: 0.5',
    "machine": "v100",
    "method": "analytic",
}


class Browser:
    """Opens pages and sends forms as a browser without scripts does."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url
        self.http = httpx.Client(
            base_url=url, headers={"accept": "text/html", "origin": url}, timeout=240
        )
        if token is not None:
            assert self.send("/sign-in", {"token": token}).status_code == 303

    def send(self, path: str, fields: Fields) -> httpx.Response:
        """Send a form."""
        headers = {"content-type": "application/x-www-form-urlencoded"}
        return self.http.post(path, content=urlencode(fields, doseq=True), headers=headers)

    def open(self, path: str, fields: Fields | None = None, status: int = 200) -> str:
        """Open a page, or send a form that a page answers; give its HTML."""
        answer = self.http.get(path) if fields is None else self.send(path, fields)
        assert answer.status_code == status, (path, answer.text)
        return answer.text

    def start(self, fields: Fields) -> str:
        """Send a form that starts a job; give the address of its page."""
        answer = self.send("/jobs", fields)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    def check_charts(self, page: str, *names: str) -> dict[str, list[str]]:
        """Load all charts of a page as the browser draws them; give the lines of their numbers."""
        charts = [html.unescape(chart) for chart in re.findall(r'data-chart="(/[^"]+)"', page)]
        found = {}
        for chart in charts:
            drawn = self.http.get(chart).json()
            assert any(series["points"] for series in drawn["series"]), chart
            name = re.findall(r"([\w-]+)\.json", chart)[0]
            found[name] = self.http.get(chart.replace(".json", ".csv")).text.splitlines()
            assert len(found[name]) > 1
        assert set(names) <= set(found)
        svg, png = (self.http.get(charts[0].replace(".json", end)) for end in (".svg", ".png"))
        assert svg.headers["content-type"] == "image/svg+xml"
        assert "<svg" in svg.text
        assert png.content.startswith(b"\x89PNG")
        return found


def read(page: str) -> str:
    """Read the words of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def list_rows(page: str, table: str) -> list[str]:
    """List the rows of the table with an id."""
    found = re.search(rf'<table id="{table}".*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    assert found is not None
    return re.findall(r"<tr.*?</tr>", found[1], re.DOTALL)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Serve a store with observations; tokens of an administrator and of a reader."""
    with serve_rows(tmp_path_factory.mktemp("pages") / "data") as (served, token):
        reader = make_token(served.data, "reader", ["estimate"])
        yield {"url": served.url, "all": token["token"], "reader": reader["token"]}
        assert "Traceback" not in served.log.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def api(service: dict[str, Any]) -> Iterator[httpx.Client]:
    """Ask the API, whose numbers the pages show."""
    headers = {"authorization": f"Bearer {service['all']}"}
    with httpx.Client(base_url=service["url"], headers=headers, timeout=240) as client:
        yield client


@pytest.fixture(scope="module")
def device(api: httpx.Client) -> dict[str, Any]:
    """Choose the device that samples."""
    devices = api.get("/v1/devices").json()["devices"]
    wanted = choose_device(one["id"] for one in devices)
    return next(one for one in devices if one["id"] == wanted)


@pytest.fixture(scope="module")
def browser(service: dict[str, Any]) -> Iterator[Browser]:
    """Sign in as an administrator."""
    browser = Browser(service["url"], service["all"])
    yield browser
    browser.http.close()


@pytest.fixture(scope="module")
def started(browser: Browser) -> dict[str, str]:
    """Start jobs by their forms, which go on beside the tests; give where their pages are."""
    compare = {"kind": "compare", "first": "linear", "second": "ridge", "split": "kernel"}
    return {
        "validate": browser.start({"kind": "validate", "models": ["linear", "ridge"]}),
        "compare": browser.start(compare),
        "train": browser.start({"kind": "train", "devices": "far-away", "key": "once"}),
    }


@pytest.fixture(scope="module")
def done(started: dict[str, str], api: httpx.Client) -> dict[str, str]:
    """Wait for these jobs; give their ids."""
    ids = {kind: path.rpartition("/")[2] for kind, path in started.items()}
    for kind, job in ids.items():
        state = wait_until(
            lambda job=job: api.get(f"/v1/jobs/{job}").json()["state"],
            lambda state: state not in {"queued", "running"},
        )
        assert state == ("failed" if kind == "train" else "done")
    return ids


def test_pages_ask_for_a_token(service: dict[str, Any], started: dict[str, str]) -> None:
    """Each page leads to where one signs in, and back; the cookie opens pages and not the API."""
    browser = Browser(service["url"])
    for path in HEADINGS:
        answer = browser.http.get(path)
        wanted = urlencode({"next": path.partition("?")[0]})
        assert (answer.status_code, answer.headers["location"]) == (303, f"/sign-in?{wanted}")
    page = browser.open("/sign-in?next=/jobs")
    assert "<h1>Sign in</h1>" in page
    assert 'name="next" value="/jobs"' in page
    wrong = browser.send("/sign-in", {"token": "guess", "next": "/jobs"})
    assert wrong.status_code == 401
    assert 'aria-invalid="true"' in wrong.text
    foreign = browser.send("/sign-in", {"token": service["reader"], "next": "//elsewhere.example"})
    assert foreign.headers["location"] == "/"
    answer = browser.send("/sign-in", {"token": service["reader"], "next": "/jobs"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    page = browser.open("/jobs")
    assert "/cancel" not in page
    assert browser.http.get("/v1/jobs").status_code == 401
    job = started["train"]
    for path, fields in (("/jobs", {"kind": "train"}), (f"{job}/cancel", {}), (f"{job}/rerun", {})):
        assert "admin" in browser.open(path, fields, status=403)
    assert "admin" in browser.open("/audit", status=403)
    assert browser.send("/sign-out", {}).headers["location"] == "/sign-in"
    assert browser.http.get("/jobs").status_code == 303


def test_every_page_has_its_title_and_all_that_it_loads(browser: Browser) -> None:
    """With its heading and its place in the navigation; every link of it leads somewhere."""
    targets: set[str] = set()
    for path, (title, heading) in HEADINGS.items():
        answer = browser.http.get(path)
        assert answer.status_code == 200, path
        page = answer.text
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "default-src 'none'; script-src 'self'" in answer.headers["content-security-policy"]
        assert f"<title>{title} - kernelcast</title>" in page
        assert f"<h1>{heading}</h1>" in page
        for label in ("Home", "Kernels", "Devices", "Accuracy", "Jobs", "Lab"):
            assert f">{label}</a>" in page
        loaded = re.findall(r'(?:href|src)="(/[^"#]*)', page)
        targets |= {
            html.unescape(target)
            for target in loaded
            if not re.search(r"\.(svg|png|csv)(\?|$)", target) or target.startswith("/assets/")
        }
    assert len([target for target in targets if target.startswith("/assets/")]) >= 5
    for target in targets - set(HEADINGS):
        assert browser.http.get(target).status_code == 200, target
    for path in HEADINGS:
        mark = "&" if "?" in path else "?"
        assert browser.http.get(f"{path}{mark}utm_source=mail").status_code == 200
    page = browser.open("/nothing", status=404)
    assert "<h1>Not found</h1>" in page
    assert "far-away" in browser.open("/devices/far-away", status=404)
    plain = browser.http.get("/nothing", headers={"accept": "application/json"}).json()
    assert plain["error"]["code"] == "not_found"
    for path in ("/assets/../app.py", "/assets/..%2f..%2fapp.py", "/assets/nothing.js"):
        assert browser.http.get(path).status_code == 404


def test_home_says_what_there_is(
    browser: Browser, api: httpx.Client, device: dict[str, Any]
) -> None:
    """Version, devices, observations, queues, and what to do next."""
    page = read(browser.open("/"))
    health = api.get("/health").json()
    assert f"version {health['version']}, API {health['api']}" in page
    assert f"devices {len(api.get('/v1/devices').json()['devices'])} 0 calibrated" in page
    assert "observations 54" in page
    assert "Calibrate a device" in page
    assert device["name"] in page
    assert "not calibrated" in page
    assert "idle" in page


def test_devices_and_machines_with_their_numbers(browser: Browser, device: dict[str, Any]) -> None:
    """Facts of a device, measured numbers of a machine, and rooflines side by side."""
    page = browser.open("/devices")
    assert device["id"] in page
    assert "/devices/machines/v100" in page
    facts = read(browser.open(f"/devices/{device['id']}"))
    assert f"compute units {device['compute_units']}" in facts
    assert f"driver {device['driver']}" in facts
    assert "Nothing was measured of this device yet." in facts
    machine = browser.open("/devices/machines/v100")
    assert "L1 128 KiB, L2 6 MiB" in machine
    assert "867 GB/s" in machine
    assert "fp32" in browser.check_charts(machine, "roofline")["roofline"][1]
    compared = browser.open("/devices/compared?machine=a100&machine=v100")
    assert "1.5 TB/s" in compared
    roofs = "\n".join(browser.check_charts(compared, "roofline")["roofline"])
    assert "A100" in roofs
    assert "V100" in roofs
    browser.open("/devices/compared?machine=nothing", status=404)
    wrong = {"kind": "calibrate", "devices": device["id"], "effort": "endless"}
    assert "'normal' or 'full'" in read(browser.open("/jobs", wrong, status=422))


def test_observations_and_a_kernel_show_the_stores_numbers(
    browser: Browser, api: httpx.Client
) -> None:
    """Observations newest first in parts, a kernel over sizes with predictions and history."""
    rows = api.get("/v1/observations", params={"limit": 1000}).json()["observations"]
    times, path = [], "/kernels?show=collected"
    while path:
        page = browser.open(html.unescape(path))
        times += [
            float(re.findall(r'data-value="([^"]+)"', row)[0]) for row in list_rows(page, "entries")
        ]
        path = "".join(re.findall(r'rel="next" href="([^"]+)"', page))
    assert times == [row["seconds"] for row in rows if row["origin"] == "collected"]
    assert "Nothing is like this." in browser.open("/kernels?kernel=nothing")
    assert "give a day such as" in browser.open("/kernels?since=soon", status=422)
    own = [row for row in rows if row["kernel"] == ROWS_KERNEL]
    page = browser.open(f"/kernels/of?name={ROWS_KERNEL}")
    sizes = list_rows(page, "sizes")
    assert len(sizes) == len(own) == 2
    for row in own:
        (line,) = [one for one in sizes if f">{row['global_size'][0]}<" in one]
        assert f'data-value="{row["seconds"]}"' in line
        assert ROWS_DEVICE in line
    charts = browser.check_charts(page, "predicted", "history")
    assert any(ROWS_DEVICE in line for line in charts["predicted"])
    unknown = browser.open("/kernels/of?name=<b>", status=404)
    assert "there is no kernel among the launches" in read(unknown)
    assert "<b>" not in unknown


def test_jobs_are_started_followed_and_repeated(
    browser: Browser, api: httpx.Client, started: dict[str, str]
) -> None:
    """By forms that say what is wrong and keep what was typed; the same form twice is one job."""
    once = {"kind": "train", "devices": "far-away", "key": "once"}
    assert browser.start(once) == started["train"]
    for fields, told in (
        ({"kind": "collect", "kernels": "no-such-kernel"}, "no-such-kernel"),
        ({"kind": "collect", "sizes": "many"}, "sizes: Input should be a valid integer"),
        ({"kind": "dance"}, "is no kind of job"),
    ):
        page = browser.open("/jobs", fields, status=422)
        assert "The job was not started" in page
        assert told in read(page)
    assert 'value="many"' in browser.open("/jobs", {"kind": "collect", "sizes": "many"}, 422)
    rerun = browser.send(f"{started['train']}/rerun", {}).headers["location"]
    assert rerun != started["train"]
    assert browser.send(f"{rerun}/cancel", {}).headers["location"] == rerun
    assert "event: end" in browser.http.get(f"{rerun}/events").text
    assert "cancelled" in read(browser.open(rerun))
    forms = ("/jobs", f"{rerun}/cancel", "/lab/estimate", "/sign-out")
    for path in forms:
        for origin in ("https://elsewhere.example", "null"):
            assert browser.http.post(path, headers={"origin": origin}).status_code == 403
    listed = browser.open("/jobs")
    assert [path for path in started.values() if f'href="{path}"' not in listed] == []
    assert started["compare"] in browser.open("/jobs/rows")
    actions = [entry["action"] for entry in api.get("/v1/audit").json()["entries"]]
    assert {"start_job", "cancel_job"} <= set(actions)
    browser.open("/jobs/nothing", status=404)


def test_the_lab_answers_what_is_typed(
    browser: Browser, api: httpx.Client, device: dict[str, Any]
) -> None:
    """Time, counts, limiters, sizes and arguments of a kernel; the answer is listed and shared."""
    time.sleep(1.5)  # changes that other tests made are seen within a second; answers then go
    asked = {**LAB, "device": device["id"], "sampling": "auto"}
    page = browser.open("/lab/estimate", asked)
    seconds = re.search(r'class="big" data-seconds="([^"]+)"', page)
    assert seconds is not None
    assert "scale(global const float *x" in page  # the fields are as they were
    assert "curl" in page
    shared = re.search(r'data-share="([^"]+)"', page)
    assert shared is not None
    assert "N = 65536" in browser.open(html.unescape(shared[1]))
    digest = re.findall(r"problem=([0-9a-f]{64})", shared[1])[0]
    body = {"problem_digest": digest, "devices": [device["id"]]}
    (answer,) = api.post("/v1/estimates", json=body).json()["estimates"]
    assert answer["is_kept"]
    assert answer["seconds"] == float(seconds[1])
    assert answer["kernel"] == "scale"
    (listed,) = list_rows(browser.open("/kernels?show=estimates"), "entries")
    assert "scale" in listed
    assert device["id"] in listed
    assert "What the newest rests on" in browser.open("/kernels/of?name=scale")
    source = read(browser.open("/lab/source", LAB))
    assert "The source, annotated" in source
    assert "64 24.6 % 1 fp32 6 sum = fma(sum, factor, 1.0f);" in source
    assert "store y[gid.x]" in source
    model = browser.open("/lab/model", LAB)
    assert "limited by" in model
    assert "Volumes" in model
    assert 'data-content="' in model  # the roofline is drawn within the page
    sizes = browser.open("/lab/local-sizes", LAB)
    assert "Local sizes of scale on v100" in read(sizes)
    assert "By the analytic model; nothing was run." in sizes
    varied = read(browser.open("/lab/sizes", {**asked, "varied": "N", "method": "estimate"}))
    assert "scale over N By estimates of the devices" in varied
    assert "Without an answer" not in varied
    filled = browser.open("/lab/arguments", {**LAB, "args": ""})
    assert filled.count("buffer: float32") >= 2
    for path, changes, field, told in (
        ("/lab/estimate", {"global_size": "many, 1"}, "global_size", "many"),
        ("/lab/estimate", {"code": '#include "a.h"\n' + LAB["code"]}, "code", "#include"),
        ("/lab/source", {"code": LAB["code"].replace("fma", "fmaa")}, "code", "line 6"),
        ("/lab/model", {"machine": "no-such"}, "machine", "no-such"),
    ):  # fmt: skip
        page = browser.open(path, {**asked, **changes}, status=422)
        complaint = re.search(rf'id="{field}-errors">(.*?)</div>', page, re.DOTALL)
        assert complaint is not None
        assert told in read(complaint[1])


def test_models_audit_and_the_api_are_listed(
    browser: Browser, api: httpx.Client, started: dict[str, str]
) -> None:
    """Models in use, what administrators did, and every route with its parameters."""
    models = read(browser.open("/accuracy/models"))
    for model in api.get("/v1/models").json()["in_use"]:
        assert f"{model['name']} {model['version']}" in models
    assert "devices here that it serves" in models
    audit = browser.open("/audit")
    assert started["train"].rpartition("/")[2] in audit
    assert "start job" in read(audit)
    page = read(browser.open("/docs"))
    for path, methods in api.get("/v1/openapi.json").json()["paths"].items():
        for method in methods:
            assert f"{method.upper()} {path}" in page
    assert browser.http.get("/openapi.json").headers["location"] == "/v1/openapi.json"


def test_finished_jobs_have_results_and_reasons(
    browser: Browser, api: httpx.Client, done: dict[str, str]
) -> None:
    """Settings, log, tables and a file; what failed says why."""
    page = read(browser.open(f"/jobs/{done['compare']}"))
    for told in ("Comparison", "first linear", "second ridge", "fits", "explaining errors"):
        assert told in page
    result = api.get(f"/v1/jobs/{done['compare']}/result").json()["result"]
    assert json.loads(browser.open(f"/jobs/{done['compare']}/result.json")) == result
    assert "Show it on Accuracy" in browser.open(f"/jobs/{done['validate']}")
    failed = read(browser.open(f"/jobs/{done['train']}"))
    assert "It failed" in failed
    assert "no sampled observations" in failed


def test_accuracy_tells_errors_of_answers_and_validations(
    browser: Browser, api: httpx.Client, device: dict[str, Any], done: dict[str, str]
) -> None:
    """Of answers that were observed by device and tier, with charts; of a validation's models."""
    problem = {**SCALE, "global_size": [32768], "name": "judged"}
    asked = {"problem": problem, "devices": [device["id"]]}
    (answer,) = api.post("/v1/estimates", json=asked).json()["estimates"]
    report = {"key": "judged", "problem": problem, "device": device["id"],
              "seconds": answer["seconds"]}  # fmt: skip
    assert api.post("/v1/observations", json={"observations": [report]}).is_success
    wait_until(lambda: api.get("/v1/answers", params={"observed": True}).json()["answers"], len)
    page = browser.open("/accuracy")
    text = read(page)
    assert "By device and tier" in text
    assert f"{device['id']} {answer['tier']}" in text
    charts = browser.check_charts(page, "launches", "drift", "weeks")
    assert any("scale" in line for line in charts["launches"])
    page = browser.open(f"/accuracy?job={done['validate']}")
    text = read(page)
    assert f"This is the validation of the job {done['validate']}" in text
    for told in ("Mean error by device", "linear", "ridge", ROWS_DEVICE, "noise floor"):
        assert told in text
    assert "/accuracy/validation-1.svg" in page
    assert "no validation 'nothing'" in read(browser.open("/accuracy?job=nothing", status=404))


def test_an_observation_is_corrected_and_removed_for_a_reason(
    browser: Browser, api: httpx.Client, service: dict[str, Any]
) -> None:
    """By an administrator; without a reason nothing is changed, and the audit log keeps it."""
    told = {"key": "wrong", "problem": {**SCALE, "name": "odd"}, "device": {"id": "far-away"},
            "seconds": 0.5}  # fmt: skip
    assert api.post("/v1/observations", json={"observations": [told]}).json()["added"] == 1
    (row,) = list_rows(browser.open("/kernels?device=far-away"), "entries")
    address = html.unescape(re.findall(r'href="(/kernels/observation[^"]+)"', row)[0])
    assert "Observation of scale" in read(browser.open(address))
    key = address.rpartition("=")[2]
    correct, remove = "/kernels/observation/correct", "/kernels/observation/remove"
    assert "say why" in browser.open(correct, {"key": key, "seconds": "0.25"}, status=422)
    fields = {"key": key, "seconds": "0.25", "contaminated": "on", "reason": "a slip"}
    assert browser.send(correct, fields).headers["location"] == address
    (row,) = api.get("/v1/observations", params={"key": key}).json()["observations"]
    assert (row["seconds"], row["flags"]) == (0.25, ["contaminated"])
    reader = Browser(service["url"], service["reader"])
    assert reader.send(remove, {"key": key, "reason": "none"}).status_code == 403
    assert "say why" in browser.open(remove, {"key": key}, status=422)
    assert browser.send(remove, {"key": key, "reason": "not ours"}).status_code == 303
    browser.open(address, status=404)
    removal, correction = api.get("/v1/audit").json()["entries"][:2]
    assert removal["detail"]["reason"] == "not ours"
    assert correction["detail"]["asked"]["reason"] == "a slip"


def test_comparing_says_which_model_is_better(
    browser: Browser, api: httpx.Client, done: dict[str, str]
) -> None:
    """With how sure that is, kernel by kernel, and the numbers of the comparison's result."""
    page = browser.open(f"/accuracy/compare?of={done['compare']}")
    text = read(page)
    assert f"linear against ridge on {ROWS_DEVICE}" in text
    result = api.get(f"/v1/jobs/{done['compare']}/result").json()["result"]
    assert {result["first"], result["second"]} == {"linear", "ridge"}
    for model in ("linear", "ridge"):
        assert re.search(rf"mean error of {model} [\d.]+ %", text)
        assert f"kernels that {model} wins" in text
    charts = browser.check_charts(page, "devices", "kernels")
    assert any(ROWS_DEVICE in line for line in charts["devices"])
    page = browser.open(f"/accuracy/compare?of={done['validate']}&first=linear&second=ridge")
    assert f"linear against ridge on {ROWS_DEVICE}" in read(page)
    wrong = browser.open(
        f"/accuracy/compare?of={done['validate']}&first=linear&second=no", status=422
    )
    assert "This cannot be compared" in wrong
    browser.open(f"/accuracy/compare?of={done['train']}", status=404)
