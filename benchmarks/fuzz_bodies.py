"""Requests that nobody should send: what `service_fuzz.py` throws at a service."""

import copy
import json
import random
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
PROBLEM: dict[str, Any] = {
    "name": "fuzz",
    "code": "kernel void fill(global float *a, float s) { a[get_global_id(0)] = s; }",
    "kernel": "fill",
    "build_options": ["-DN=4"],
    "parameters": {"N": 1024},
    "global_size": ["{N}"],
    "local_size": [64],
    "global_offset": [0],
    "args": [
        {"buffer": "float32", "count": "{N}", "init": "uniform", "access": "write"},
        {"scalar": "float32", "value": 2.0},
    ],
}
_JOBS: tuple[dict[str, Any], ...] = (
    {"kind": "collect", "options": {"kernels": ["nbody"], "sizes": 2, "devices": ["fake"]}},
    {"kind": "calibrate", "options": {"effort": "quick", "only": []}},
    {"kind": "train", "options": {"model": "hybrid", "validate": False}},
    {"kind": "validate", "options": {"models": ["linear"], "split": "kernel"}},
    {"kind": "compare", "options": {"first": "linear", "second": "hybrid"}},
)
_SAMPLING = ("auto", "never", "x")
CANARY = "fuzz-canary-5f1d"
"""Stands in a file outside the data folder; no answer may hold it."""
_PATHS = (
    "/etc/passwd", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "/proc/self/environ",
    "file:///etc/passwd", "C:\\boot.ini", "~/.ssh/id_rsa", "\\\\host\\share", "a/b/../../c",
    "%00", ".", "..", "canary.npy", "CANARY_PATH",
)  # fmt: skip
_TEXTS = (
    "", " ", "\x00", "\ud800", "🦀" * 50, "a" * 10_000, "{N}", "{N} * {N}", "{", "}", "{}", "{{N}}",
    "{M}", "9**9**9", "2**70", "1e999", "nan", "-1", "0x10", "(" * 400, "N" * 300, "float32",
    "float32x4", "int8x16", "float64", "uniform", "zeros", "arange", "permutation", "read_write",
    "null", "true", "<script>alert(1)</script>", "'; DROP TABLE jobs; --", "${jndi:ldap://x}",
    "{% for one in (1).__class__ %}", *_PATHS,
)  # fmt: skip
_NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 3, 64, 1024, 2**31 - 1, 2**31, 2**32, 2**53, 2**63, 2**64, 2**200, -(2**63), 0.5,
    -0.0, 1e-320, 1e308, float("inf"), float("-inf"), float("nan"), True, False, None,
)  # fmt: skip
_SOURCES = (
    '#include "/etc/passwd"', "#include </proc/self/environ>", '%:include "x"', "??=include <x>",
    '#\\\ninclude "CANARY_PATH"', '# /* */ include "x"', '_Pragma("include x")', '__asm__("nop");',
    '#pragma OPENCL EXTENSION cl_khr_fp64 : enable', '#embed "/etc/passwd"', "#line 1 \"/etc/x\"",
    "kernel void fill(global float *a, float s) { while (1) a[0] = s; }",
    "kernel void fill(global float *a, float s) { a[(size_t)1 << 40] = s; }",
    "kernel void fill(global float *a, float s) {" + "{" * 2000,
    "\n".join(f"#define A{n} A{n + 1} A{n + 1}" for n in range(40)) + "\nA0",
    "kernel void fill() {}", "void fill() {}", "", "\x00", "é" * 100, "/*" * 5000, '"' * 999,
)  # fmt: skip
_OPTIONS = (
    "-I/etc", "-include /etc/passwd", "-DX=`id`", "-D" + "X" * 999, "-cl-std=CL9.9", "-w", "@file",
    "-save-temps=/tmp/x", "-DN={N}", "-DN={M}", "--help", "-Xclang", "-DX=\"a b\"", "-o/tmp/x",
)  # fmt: skip
_PLACES = (
    "/v1/problems/{}", "/v1/devices/{}", "/v1/machines/{}", "/v1/models/{}", "/v1/models/{}/report",
    "/v1/jobs/{}", "/v1/jobs/{}/result", "/v1/jobs/{}/events", "/assets/{}", "/jobs/{}",
    "/jobs/{}/events", "/jobs/{}/result.json", "/devices/{}", "/accuracy/{}.svg",
    "/accuracy/{}.csv", "/comparing/{}.png", "/{}",
)  # fmt: skip
_PAGES = (
    "/accuracy",
    "/comparing",
    "/jobs",
    "/devices",
    "/lab",
    "/sign-in",
    "/v1/jobs",
    "/v1/audit",
)
_WORDS = ("source", "device", "method", "job", "of", "first", "second", "new", "theme", "kind",
          "state", "most", "next", "version")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it is sent.

    Parameters
    ----------
    method, path : str
        Where.
    body : bytes
        What.
    content_type : str
        What it is said to be.
    """

    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON


def make_requests(count: int, seed: int, canary: str, device: str) -> Iterator[Request]:
    """Make requests, always the same of a seed.

    Parameters
    ----------
    count : int
        How many.
    seed : int
        Another seed, other requests.
    canary : str
        Path of a file that must not be read.
    device : str
        Whose id begins so.
    """
    rng = random.Random(seed)
    makers = (
        (_make_estimate, 45), (_make_observation, 15), (_make_problem, 8), (_make_job, 12),
        (_make_get, 10), (_make_page, 4), (_make_form, 6), (_make_broken, 6),
    )  # fmt: skip
    for _ in range(count):
        maker = rng.choices([one for one, _ in makers], [weight for _, weight in makers])[0]
        request = maker(rng)
        body = request.body.replace(b"CANARY_PATH", canary.encode())
        body = body.replace(b'"fake"', json.dumps(device).encode())
        yield Request(request.method, request.path, body, request.content_type)


def _make_estimate(rng: random.Random) -> Request:
    one: dict[str, Any] = {"problem": copy.deepcopy(PROBLEM), "devices": ["fake"]}
    if rng.random() < 0.2:
        one = {"problems": [{"problem": copy.deepcopy(PROBLEM)} for _ in range(rng.randrange(4))]}
    if rng.random() < 0.3:
        one |= {"budget": rng.choice(_NUMBERS), "coverage": rng.choice(_NUMBERS),
                "seed": rng.choice(_NUMBERS), "sampling": rng.choice(_SAMPLING)}  # fmt: skip
    return Request("POST", "/v1/estimates", _write(_spoil(one, rng)))


def _make_observation(rng: random.Random) -> Request:
    one = {"key": "a", "problem": copy.deepcopy(PROBLEM), "device": "fake", "seconds": 0.1,
           "local_size": [64]}  # fmt: skip
    return Request("POST", "/v1/observations", _write(_spoil({"observations": [one]}, rng)))


def _make_problem(rng: random.Random) -> Request:
    return Request("POST", "/v1/problems", _write(_spoil(copy.deepcopy(PROBLEM), rng)))


def _make_job(rng: random.Random) -> Request:
    job = copy.deepcopy(rng.choice(_JOBS))
    path = "/v1/jobs"
    if job["kind"] == "compare" and rng.random() < 0.5:
        path, job = "/v1/comparisons", job["options"]
    return Request("POST", path, _write(_spoil(job, rng)))


def _make_get(rng: random.Random) -> Request:
    word = rng.choice((*_TEXTS, "hybrid/x", "0", "a" * 64, "launches", "style.css"))
    safe = "/%" if rng.random() < 0.5 else ""
    path = rng.choice(_PLACES).format(quote(word[:500], safe=safe, errors="replace"))
    return Request(rng.choice(("GET", "GET", "GET", "HEAD", "DELETE", "PUT", "OPTIONS")), path)


def _make_page(rng: random.Random) -> Request:
    query = {rng.choice(_WORDS): _pick_text(rng)[:300] for _ in range(rng.randrange(4))}
    return Request("GET", f"{rng.choice(_PAGES)}?{urlencode(query, errors='replace')}")


def _make_form(rng: random.Random) -> Request:
    job = rng.choice(_JOBS)
    fields: list[tuple[str, str]] = [("kind", job["kind"]), ("key", "k")]
    fields += [(name, str(one)) for name, one in job["options"].items()]
    fields += [(rng.choice(("code", "sizes", "kernels", "token", "runs")), _pick_text(rng))]
    rng.shuffle(fields)
    path = rng.choice(("/jobs", "/lab", "/lab/estimate", "/sign-in", "/jobs/x/cancel"))
    return Request("POST", path, urlencode(fields, errors="replace").encode(), FORM)


def _make_broken(rng: random.Random) -> Request:
    """Send what is no JSON, or not what it says it is."""
    path = rng.choice(("/v1/estimates", "/v1/observations", "/v1/jobs", "/v1/problems"))
    whole = _write({"problem": PROBLEM})
    place = rng.randrange(len(whole))
    body = rng.choice((
        whole[:place], whole[:place] + bytes([rng.randrange(256)]) + whole[place + 1 :],
        b"[" * 20_000, b'{"a":' * 5000, b"\xff\xfe" + whole, b"", b"null", b"0", b'"' + b"a" * 99,
        whole * 3, b'{"problem": {"code": 1e99999}}', rng.randbytes(rng.randrange(2000)),
    ))  # fmt: skip
    kind = rng.choice((JSON, JSON, JSON, "text/plain", FORM, "", "application/json; charset=utf-7"))
    return Request("POST", path, body, kind)


def _spoil(content: Any, rng: random.Random) -> Any:  # noqa: ANN401 - JSON
    """Change a few places of JSON; now and then none, so that some requests are good."""
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        places = [*_list_places(content)]
        if not places:
            return content
        holder, key = rng.choice(places)
        _spoil_place(holder, key, rng)
    return content


def _list_places(content: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - JSON
    if isinstance(content, dict):
        for key, one in content.items():
            yield content, key
            yield from _list_places(one)
    elif isinstance(content, list):
        for place, one in enumerate(content):
            yield content, place
            yield from _list_places(one)


def _spoil_place(holder: Any, key: Any, rng: random.Random) -> None:  # noqa: ANN401 - JSON
    what = rng.randrange(8)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, dict):
        holder[_pick_text(rng)[:200]] = holder[key]
    elif what == 2 and isinstance(holder, list):
        holder.extend([holder[key]] * rng.choice((1, 5, 300)))
    elif key == "code":
        holder[key] = rng.choice(_SOURCES)
    elif key == "build_options":
        holder[key] = [rng.choice(_OPTIONS) for _ in range(rng.randrange(1, 4))]
    else:
        holder[key] = _pick_value(rng)


def _pick_value(rng: random.Random) -> Any:  # noqa: ANN401 - JSON
    what = rng.randrange(5)
    if what == 0:
        return rng.choice(_NUMBERS)
    if what == 1:
        return [_pick_text(rng) for _ in range(rng.randrange(4))]
    if what == 2:
        return {_pick_text(rng)[:100]: rng.choice(_NUMBERS)}
    if what == 3:
        nested: Any = rng.choice(_NUMBERS)
        for _ in range(rng.choice((3, 60, 300))):
            nested = [nested]
        return nested
    return _pick_text(rng)


def _pick_text(rng: random.Random) -> str:
    if rng.random() < 0.2:
        return "".join(rng.choices(string.printable, k=rng.randrange(40)))
    return rng.choice(_TEXTS)


def _write(content: object) -> bytes:
    """Write JSON, infinities and lone surrogates too."""
    return json.dumps(content).encode()
