"""The page of the layer-condition calculator."""

import html
import re
from collections.abc import Callable

import httpx
import pytest

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
