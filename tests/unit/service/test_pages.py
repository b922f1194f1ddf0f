"""What holds for every page; the pages of devices and jobs; the Lab, and where complaints stand."""

import html
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from kernelcast.records.errors import CompileError, NoDeviceError
from kernelcast.records.service_state import JobKind
from kernelcast.service import ServiceSettings
from kernelcast.service.pages.lab import fields_of_content, list_examples, make_content
from support.served_pages import SHOWN_PAGES, add_job
from support.service_attacks.target import add_tokens
from support.service_backend import FIRST, FakeBackend, failing, open_client, service_of

Check = Callable[[httpx.Response], str]
Post = Callable[..., httpx.Response]
Fields = dict[str, str | Sequence[str]]
SAXPY = """kernel void saxpy(global const float *x, global float *y, float a) {
    size_t i = get_global_id(0);
    y[i] = a * x[i] + y[i];
}"""


@pytest.fixture
def fields() -> Fields:
    return {
        "code": SAXPY, "kernel": "saxpy", "parameters": "N = 2 ** 16", "global_size": "{N}",
        "local_size": "64", "device": FIRST, "sampling": "auto", "machine": "a100",
        "method": "analytic",
        "args": 'buffer: float32, count: "{N}", init: uniform\n'
        'buffer: float32, count: "{N}"\nscalar: float32, value: 2.0',
    }  # fmt: skip


def _errors_of(text: str) -> dict[str, str]:
    found = re.findall(r'<p class="field-error" data-field="(\w+)">(.*?)</p>', text, re.DOTALL)
    return {name: html.unescape(message) for name, message in found}


def _complain(post: Post, check_page: Check, path: str, fields: Fields) -> dict[str, str]:
    answer = post(path, fields, is_fragment=True)
    assert answer.status_code == 422
    return _errors_of(check_page(answer))


@pytest.mark.parametrize("name", list_examples())
def test_every_example_is_a_problem(
    client: TestClient, post: Post, check_page: Check, name: str
) -> None:
    """Each can be loaded and estimated as it is."""
    example = list_examples()[name]
    text = check_page(client.get(f"/lab?example={name}"))
    assert html.escape(example.first("kernel")) in text
    answer = post("/lab/estimate", {**example, "device": FIRST}, is_fragment=True)
    assert answer.status_code in {200, 422}
    assert not _errors_of(check_page(answer))


def test_where_kernels_are_not_run(
    settings: ServiceSettings, backend: FakeBackend, post: Post, check_page: Check, fields: Fields
) -> None:
    """The page says what to do to allow it, and the answer says why there is none.

    Without the check mark nothing is run where it is allowed either.
    """
    headers = {"origin": "http://127.0.0.1", "x-fragment": "1"}
    with open_client(settings, allow_run=False) as client:
        page = check_page(client.get("/lab"))
        answer = check_page(client.post("/lab/estimate", data=fields, headers=headers))
    for text, words in ((page, "Kernels are not run here"), (answer, "No estimate")):
        assert words in text
        assert "kernelcast serve --allow-run" in text
    del fields["sampling"]
    backend.is_calibrated = True
    assert ">analytic<" in check_page(post("/lab/estimate", fields, is_fragment=True))
    assert backend.calls["sample"] == 0


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"code": " "}, "code", "paste OpenCL C"),
        ({"code": "void f() {}", "kernel": ""}, "code", "has no kernel"),
        ({"code": SAXPY + SAXPY.replace("saxpy", "other"), "kernel": ""}, "kernel", "saxpy, other"),
        ({"build_options": "-I/etc"}, "build_options", "-I/etc"),
        ({"parameters": "N"}, "parameters", "NAME = VALUE"),
        ({"parameters": "N = many"}, "parameters", "expected a number"),
        ({"global_size": "1, 2, 3, 4"}, "global_size", "one to three"),
        ({"global_size": "{M}"}, "global_size", "no parameter"),
        ({"local_size": "0"}, "local_size", "at least 1"),
        ({"args": ""}, "args", "a line per argument"),
        ({"args": "buffer float32"}, "args", "unknown key"),
        ({"args": "buffer: float32, count: 2 ** 40"}, "args", "bytes"),
        ({"args": "buffer: &a [*a]"}, "args", "argument 1"),
        ({"args": "scalar: int32, value: 2026-01-01"}, "args", "argument 1"),
        ({"device": ""}, "device", "at least one device"),
        ({}, "code", "line 3: no <such> thing"),
    ],
)  # fmt: skip
def test_complaints_stand_beside_their_fields(
    post: Post, check_page: Check, fields: Fields, backend: FakeBackend, changes: Fields,
    field: str, words: str,
) -> None:  # fmt: skip
    """What is wrong is told where it is wrong, a compiler's words at the source."""
    backend.before = failing(CompileError("line 3: no <such> thing"))
    found = _complain(post, check_page, "/lab/estimate", {**fields, **changes})
    assert list(found) == [field]
    assert words in found[field]


@pytest.mark.usefixtures("in_process")
def test_arguments_that_do_not_fit(post: Post, check_page: Check, fields: Fields) -> None:
    short = "buffer: float32, count: 64\nscalar: float32, value: 1"
    for path in ("/lab/source", "/lab/model"):
        found = _complain(post, check_page, path, {**fields, "args": short})
        [message] = found.values()
        assert "2 arguments" in message


@pytest.mark.usefixtures("in_process")
def test_local_sizes(post: Post, check_page: Check, fields: Fields, backend: FakeBackend) -> None:
    """A device answers one local size after the other; a kernel that shares local memory has one,
    and the page says why."""
    asked = {**fields, "method": "estimate"}
    text = check_page(post("/lab/local-sizes", asked, is_fragment=True))
    assert f"Local sizes of saxpy on {FIRST}" in text
    assert backend.calls["sample"] == 11  # powers of two to 1024
    assert backend.most_at_once[FIRST] == 1
    source = SAXPY.replace("float a)", "float a, local float *s)").replace("y[i] =", "*s = y[i] =")
    shared = {**fields, "code": source, "args": f"{fields['args']}\nlocal: 64"}
    text = check_page(post("/lab/local-sizes", shared, is_fragment=True))
    assert "Only 64 has an answer" in text
    assert "shares local memory" in text
    found = _complain(post, check_page, "/lab/local-sizes", {**shared, "method": "estimate"})
    assert "local memory" in found["local_size"]
    found = _complain(post, check_page, "/lab/local-sizes", {**asked, "device": ""})
    assert "one device" in found["device"]


@pytest.mark.usefixtures("in_process")
def test_arguments_are_filled_in(post: Post, check_page: Check, fields: Fields) -> None:
    """From the source: buffers as large as the launch; they can be estimated at once."""
    held = post("/lab/arguments", {**fields, "args": "", "kernel": ""}, is_fragment=True).json()
    buffer = "buffer: float32, count: 65536, init: uniform"
    assert held["kernel"] == "saxpy"
    assert held["args"].split("\n") == [buffer, buffer, "scalar: float32, value: 1.0"]
    assert post("/lab/estimate", {**fields, **held}, is_fragment=True).status_code == 200
    found = _complain(post, check_page, "/lab/arguments", {**fields, "kernel": "nope"})
    assert "saxpy" in found["kernel"]


def test_an_example_survives_its_address() -> None:
    """What was asked fills the same fields again, quotes and braces included."""
    for fields in list_examples().values():
        content = make_content(fields)
        assert make_content(fields_of_content(json.loads(json.dumps(content)))) == content


@pytest.mark.parametrize("path", SHOWN_PAGES)
def test_every_page_is_sound(client: TestClient, check_page: Check, path: str) -> None:
    """Pages answer without data, well formed, with their place in the navigation marked."""
    text = check_page(client.get(path))
    assert ('aria-current="page"' in text) == (path not in {"/audit", "/docs"})
    assert 'href="#main"' in text
    assert 'aria-live="polite"' in text


def test_pages_that_moved_lead_on(client: TestClient) -> None:
    """Addresses of before are no dead ends, and keep what was asked."""
    for path, target in {
        "/observations": "/kernels", "/estimates?x=1": "/kernels?show=estimates&x=1",
        "/comparing?of=1": "/accuracy/compare?of=1", "/models": "/accuracy/models",
    }.items():  # fmt: skip
        answer = client.get(path, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (307, target)


@pytest.fixture
def locked(settings: ServiceSettings, backend: FakeBackend) -> Iterator[tuple[TestClient, str]]:
    """Give a client of a service that needs tokens, and one."""
    with open_client(settings, backend, require_tokens=True) as found:
        found.follow_redirects = False
        yield found, add_tokens(str(settings.database))["reader"]


def test_over_tls_the_cookie_stays_there(locked: tuple[TestClient, str]) -> None:
    """Browsers take it over TLS alone, and from this host alone."""
    client, token = locked
    client.base_url = httpx.URL("https://127.0.0.1")
    headers = {"origin": "https://127.0.0.1"}
    answer = client.post("/sign-in", content=f"token={token}", headers=headers)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"__Host-kernelcast_token={token};")
    for wanted in ("Secure", "HttpOnly", "Path=/", "SameSite=strict"):
        assert wanted in cookie
    assert "Domain" not in cookie
    cookies = {"cookie": f"__Host-kernelcast_token={token}"}
    assert client.get("/devices", headers=headers | cookies).status_code == 200
    planted = {"cookie": f"kernelcast_token={token}"}
    assert client.get("/devices", headers=headers | planted).status_code == 303
    gone = client.post("/sign-out", headers=headers | cookies).headers["set-cookie"]
    assert gone.startswith('__Host-kernelcast_token=""')
    assert "Secure" in gone


def test_without_tls_the_cookie_has_its_plain_name(locked: tuple[TestClient, str]) -> None:
    """Whatever a stranger says of the scheme; that of a revoked token goes.

    The pictures of a page would count as guesses otherwise.
    """
    client, token = locked
    headers = {"origin": "http://127.0.0.1", "x-forwarded-proto": "https"}
    cookie = client.post("/sign-in", data={"token": token}, headers=headers)
    assert cookie.headers["set-cookie"].startswith("kernelcast_token=")
    assert "Secure" not in cookie.headers["set-cookie"]
    client.cookies.set("kernelcast_token", "kc_000000000000_" + "a" * 43)
    answer = client.get("/devices")
    assert answer.status_code == 303
    assert 'kernelcast_token=""' in answer.headers["set-cookie"]


def test_a_damaged_calibration_is_told(client: TestClient, check_page: Check, folder: Path) -> None:
    """The other device is still there."""
    (folder / "machines").mkdir(parents=True)
    (folder / "machines" / f"{FIRST}.yaml").write_text("schema: [", encoding="utf-8")
    text = check_page(client.get("/devices"))
    assert "The calibration cannot be read" in text
    assert "Other device" in text


def test_no_device_at_all(
    settings: ServiceSettings, check_page: Check, backend: FakeBackend
) -> None:
    """The service lives and is not ready; pages say why, and how to get a device."""
    error = NoDeviceError("no OpenCL platform; install 'kernelcast[cpu]'")
    backend.list_devices = lambda: failing(error)(None)  # type: ignore[method-assign,arg-type]
    with open_client(settings, backend) as client:
        client.base_url = httpx.URL("http://[::1]")
        assert client.get("/health").status_code == 200
        ready = client.get("/ready")
        assert (ready.status_code, ready.json()["error"]["code"]) == (503, "no_device")
        assert "retry-after" in ready.headers
        text = check_page(client.get("/devices"))
        assert "There is no OpenCL device here" in text
        assert "kernelcast[cpu]" in text
        assert "There is no OpenCL device here" in check_page(client.get("/lab"))


def test_pictures_in_both_themes(client: TestClient) -> None:
    """Their ink is that of the browser's theme; they hold no script and nothing from elsewhere."""
    picture = client.get("/devices/machines/a100/saturation.svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    for ink in (
        "svg { color: #1b1d21 }",
        "(prefers-color-scheme: dark) { svg { color: #e6e8ec } }",
    ):
        assert ink in picture.text
    assert "stroke: currentColor" in picture.text
    assert "<script" not in picture.text


def test_the_button_starts_a_calibration(client: TestClient, post: Post, check_page: Check) -> None:
    """The job is audited, and shown instead of the button of its device."""
    answer = post("/jobs", {"kind": "calibrate", "devices": FIRST, "effort": "quick"})
    assert [one.action for one in service_of(client).state.audit.list(most=5)] == ["start_job"]
    text = check_page(client.get("/devices"))
    assert f'href="{answer.headers["location"]}"' in text
    assert text.count('name="kind" value="calibrate"') == 1


@pytest.mark.parametrize(
    ("kind", "fields", "options"),
    [
        (
            "collect",
            {"kernels": "nbody", "devices": "fake-device-0000", "time_budget_minutes": "2",
             "retry_failures_is_there": "1", "retry_failures": "on", "sizes": ""},
            {"kernels": ["nbody"], "devices": ["fake-device-0000"], "time_budget_seconds": 120.0,
             "retry_failures": True},
        ),
        ("calibrate", {"effort": "quick", "only": ""},
         {"effort": "quick", "devices": ["fake-device-0000", "other-device-1111"]}),
        ("train", {"model": "hybrid", "validate_is_there": "1"},
         {"model": "hybrid", "validate": False}),
        ("compare", {"first": "analytic", "second": "hybrid", "shortest_seconds": "0.05"},
         {"first": "analytic", "second": "hybrid", "shortest_seconds": 0.05}),
    ],
)  # fmt: skip
def test_a_form_starts_a_job(
    client: TestClient, post: Post, kind: str, fields: dict[str, Any],
    options: dict[str, Any],
) -> None:  # fmt: skip
    answer = post("/jobs", {"kind": kind, **fields})
    [job] = client.get("/v1/jobs").json()["jobs"]
    assert (job["kind"], job["options"]) == (kind, options)
    assert answer.headers["location"] == f"/jobs/{job['id']}"
    page = client.get(answer.headers["location"]).text
    assert "queued" in page
    assert "asked for by local" in page


@pytest.mark.parametrize(
    ("kind", "result", "told"),
    [
        (JobKind.COLLECT,
         {"devices": [{"device_id": "d", "kernels": 2, "measured": 12, "present": 0,
                       "disturbed": 1, "skipped": {"huge": "too large"},
                       "failures": [{"kernel": "k", "kind": "KernelRunError", "message": "bad"}],
                       "errors": {"e": "no source"}}]},
         ["too large", "KernelRunError: bad", "no source"]),
        (JobKind.CALIBRATE,
         {"devices": [{"device_id": "d", "durations_seconds": {"copy": 61.0}, "resumed": [],
                       "failed": {"walk": "no cache"}},
                      {"device_id": "e", "error_message": "it is gone"}]},
         ["no cache", "it is gone", "61"]),
        (JobKind.TRAIN,
         {"models": [{"name": "hybrid/d", "version": "0001", "rows": 9, "kernels": 3,
                      "devices": ["d"]}], "refused": {"hybrid/e": "too few rows"},
          "left_out": ["hybrid/d: 3 of 12 rows are left out"]},
         ["hybrid/d", "too few rows", "3 of 12 rows"]),
    ],
)  # fmt: skip
def test_results_are_tables(
    client: TestClient, kind: JobKind, result: object, told: list[str]
) -> None:
    job_id = add_job(service_of(client).state, kind, result=result)
    page = client.get(f"/jobs/{job_id}").text
    assert all(one in page for one in told)
    assert client.get(f"/jobs/{job_id}/result.json").json() == result
