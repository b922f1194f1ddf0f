"""The page of the layer-condition calculator."""

import html
import re
from collections.abc import Callable

import httpx
import pytest
from fastapi.testclient import TestClient

Check = Callable[[httpx.Response], str]
Post = Callable[..., httpx.Response]
PATH = "/lab/conditions"
pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture
def fields() -> dict[str, str]:
    """Give the fields of a 5-point stencil."""
    return {
        "constants": "n = 1000",
        "loops": "y in range(1, n - 1)\nx in range(1, n - 1)",
        "arrays": "double a[n][n]\ndouble b[n][n]",
        "loads": "a[y*n + x]\na[y*n + x - 1]\na[y*n + x + 1]\na[(y - 1)*n + x]\na[(y + 1)*n + x]",
        "stores": "b[y*n + x]",
        "element": "double",
        "machine": "",
        "caches": "32 KiB, 1 MiB",
        "line_bytes": "64",
        "size": "n",
        "local_size": "64, 4",
    }


def _cells(text: str) -> list[str]:
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", text, re.DOTALL)
    return [html.unescape(" ".join(re.sub(r"<[^>]+>", " ", one).split())) for one in rows]


def test_volumes_and_conditions(
    client: TestClient, post: Post, check_page: Check, fields: dict[str, str]
) -> None:
    """Volumes of each level, the sizes at which they change, and a picture with its numbers."""
    assert "Calculate" in check_page(client.get(PATH))
    text = check_page(post(PATH, fields, is_fragment=True))
    rows = _cells(text)
    # Rows of 8000 bytes: two of a and one of b fit 32 KiB. A line in for a and b each, one out.
    assert "L2 1 MiB 4.00 2.00 1.00 L1 - L2 16.0 8.00" in rows
    assert any("2*n <= 2049 1,024" in one for one in rows)
    assert 'download="layer-conditions-n.csv"' in text
    page = check_page(post(PATH, fields))
    assert "<html" in page
    assert "L1 - L2" in page


def test_a_gpu_of_the_list(post: Post, check_page: Check, fields: dict[str, str]) -> None:
    """Loops become work-items; what the L2 cache keeps are the conditions."""
    text = check_page(post(PATH, {**fields, "machine": "v100", "size": ""}, is_fragment=True))
    assert "in rows before" in text
    assert "holds" in text
    assert "DRAM to L2" in text


@pytest.mark.parametrize(
    ("name", "value", "words", "place"),
    [
        ("loads", "a[y*n + q]", "'q' is not known", "q]"),
        ("loads", "a[x]\na[x*y]", "line 2: not affine: x times y", "*y"),
        ("stores", "b[a]", "an array", "a]"),
        ("stores", "b[x", "expected ']'", ""),
        ("loops", "x in rang(n)", "expected 'range'", "rang"),
        ("loops", "", "0 loops", None),
        ("arrays", "double a[z]", "'z' is not known", "z]"),
        ("arrays", "quad a", "quad", None),
        ("constants", "n = many", "n = many", None),
        ("caches", "32 apples", "32 apples", None),
        ("caches", "", "''", None),
        ("line_bytes", "63", "power of two", None),
        ("size", "m", "the constants are: n", None),
        ("machine", "no-such", "no-such", None),
    ],
)
def test_complaints_point_at_the_place(
    post: Post,
    check_page: Check,
    fields: dict[str, str],
    name: str,
    value: str,
    words: str,
    place: str | None,
) -> None:
    """The field's complaint shows the line with a mark below what is wrong."""
    answer = post(PATH, {**fields, name: value}, is_fragment=True)
    assert answer.status_code == 422
    found = re.findall(r'data-field="(\w+)">(.*?)</p>', check_page(answer), re.DOTALL)
    assert [one for one, _ in found] == [name]
    message = html.unescape(found[0][1])
    assert words in message
    if place is not None:
        _, line, mark = message.split("\n")
        assert line[mark.index("^") :].startswith(place)
    page = check_page(post(PATH, {**fields, name: value}))
    assert html.escape(message.split("\n")[0]).split("&#")[0][:12] in page
