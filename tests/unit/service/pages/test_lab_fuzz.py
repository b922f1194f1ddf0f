"""Whatever is typed into the Lab, the answer is a page and never a failure of the service."""

from collections.abc import Callable

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

Post = Callable[..., httpx.Response]
Check = Callable[[httpx.Response], str]
_PIECES = st.sampled_from([
    "a[", "]", "(", ")", "x", "y", "n", "*", "+", "-", "/", "%", "0", "1", "7", "64", "range(",
    ",", "in", "for", "if", "=", "{", "}", "\n", " ", "double", "float32", "buffer:", "count:",
    "scalar:", "value:", "init:", "uniform", "kernel void f(", "global float *a", "nan", "<b>",
    "a[get_global_id(0)] = 1;", "\u00e9", "\x00", "'", '"', "[[", "99999999999999999999", "1e400",
    "**", "!!python/x", "&a", "*a", "2026-01-01",
])  # fmt: skip
TEXTS = st.one_of(st.lists(_PIECES, max_size=12).map("".join), st.text(max_size=30))
KERNEL = {
    "code": "kernel void f(global float *a) { a[get_global_id(0)] = 1; }", "kernel": "f",
    "build_options": "", "parameters": "N = 64", "global_size": "{N}", "local_size": "16",
    "global_offset": "", "args": "buffer: float32, count: 64", "device": "fake-device-0000",
    "machine": "a100", "method": "analytic", "sampling": "auto",
}  # fmt: skip
_EXPECTED = {200, 400, 422}  # 400 for a NUL, which no browser sends
_MILD = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@_MILD
@given(changes=st.dictionaries(st.sampled_from(sorted(KERNEL)), TEXTS, max_size=3))
def test_estimates(post: Post, check_page: Check, changes: dict[str, str]) -> None:
    """Estimates answer or complain."""
    answer = post("/lab/estimate", {**KERNEL, **changes}, is_fragment=True)
    assert answer.status_code in _EXPECTED | {404}
    if answer.status_code != 400:
        check_page(answer)


@pytest.mark.usefixtures("in_process")
@_MILD
@given(code=TEXTS, args=TEXTS)
@example(code="", args=",0")
def test_sources(post: Post, check_page: Check, code: str, args: str) -> None:
    """Sources are read, or complained about."""
    changes = {"code": f"{KERNEL['code']}\n{code}", "args": f"{KERNEL['args']}{args}"}
    for path in ("/lab/source", "/lab/arguments"):
        answer = post(path, {**KERNEL, **changes}, is_fragment=True)
        assert answer.status_code in _EXPECTED
        if answer.headers["content-type"].startswith("text/html"):
            check_page(answer)
