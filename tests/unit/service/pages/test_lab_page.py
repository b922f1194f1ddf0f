"""The Lab: what is typed, what is answered, and where complaints stand."""

import html
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict

import httpx
import pytest
from fastapi.testclient import TestClient

from kernelcast.records.errors import CompileError
from kernelcast.service import ServiceSettings
from kernelcast.service.pages.lab import fields_of_content, list_examples
from support.service_backend import FIRST, FakeBackend, failing, open_client

Check = Callable[[httpx.Response], str]
Post = Callable[..., httpx.Response]
Fields = dict[str, str | Sequence[str]]
SAXPY = """kernel void saxpy(global const float *x, global float *y, float a) {
    size_t i = get_global_id(0);
    y[i] = a * x[i] + y[i];
}"""


@pytest.fixture
def fields() -> Fields:
    """Give fields that can be sent."""
    return {
        "code": SAXPY,
        "kernel": "saxpy",
        "parameters": "N = 2 ** 16",
        "global_size": "{N}",
        "local_size": "64",
        "args": 'buffer: float32, count: "{N}", init: uniform\n'
        'buffer: float32, count: "{N}"\nscalar: float32, value: 2.0',
        "device": FIRST,
        "sampling": "auto",
        "machine": "a100",
        "method": "analytic",
    }


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
    assert html.escape(example.kernel) in text
    answer = post("/lab/estimate", {**asdict(example), "device": FIRST}, is_fragment=True)
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
        ({"code": "#include <x.h>"}, "code", "#include"),
        ({"code": SAXPY + SAXPY.replace("saxpy", "other"), "kernel": ""}, "kernel", "saxpy, other"),
        ({"build_options": "-I/etc"}, "build_options", "-I/etc"),
        ({"parameters": "N"}, "parameters", "NAME = VALUE"),
        ({"parameters": "N = many"}, "parameters", "expected a number"),
        ({"global_size": "1, 2, 3, 4"}, "global_size", "one to three"),
        ({"global_size": "{M}"}, "global_size", "no parameter"),
        ({"local_size": "0"}, "local_size", "at least 1"),
        ({"args": ""}, "args", "a line per argument"),
        ({"args": "buffer float32"}, "args", "unknown key"),
        ({"args": "buffer: nope, count: 3"}, "args", "nope"),
        ({"args": "buffer: float32, count: 2 ** 40"}, "args", "bytes"),
        *(
            ({"args": args}, "args", "argument 1")
            for args in ("{" * 50, "buffer: &a [*a]", "scalar: int32, value: 2026-01-01",
                         "scalar: int32, value: !!binary aGk=")
        ),
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
    """One argument too few is told at the arguments."""
    short = "buffer: float32, count: 64\nscalar: float32, value: 1"
    for path in ("/lab/source", "/lab/model"):
        found = _complain(post, check_page, path, {**fields, "args": short})
        [message] = found.values()
        assert "2 arguments" in message


@pytest.mark.usefixtures("in_process")
def test_a_kernel_for_one_local_size(post: Post, check_page: Check, fields: Fields) -> None:
    """One that shares local memory has one answer, and the page says why."""
    shared = {
        **fields,
        "code": SAXPY.replace("float a)", "float a, local float *s)").replace(
            "y[i] =", "s[get_local_id(0)] = x[i]; y[i] ="
        ),
        "args": f"{fields['args']}\nlocal: 256",
    }
    text = check_page(post("/lab/local-sizes", shared, is_fragment=True))
    assert "Only 64 has an answer" in text
    assert "shares local memory" in text


def test_local_sizes_by_estimates(
    post: Post, check_page: Check, fields: Fields, backend: FakeBackend
) -> None:
    """A device answers one local size after the other; not where a kernel is made for one."""
    asked = {**fields, "method": "estimate"}
    text = check_page(post("/lab/local-sizes", asked, is_fragment=True))
    assert f"Local sizes of saxpy on {FIRST}" in text
    assert backend.calls["sample"] == 11  # powers of two to 1024
    assert backend.most_at_once[FIRST] == 1
    shared = {**asked, "args": f"{fields['args']}\nlocal: 64"}
    found = _complain(post, check_page, "/lab/local-sizes", shared)
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
        again = fields_of_content(json.loads(json.dumps(fields.to_content())))
        assert again.to_content() == fields.to_content()
