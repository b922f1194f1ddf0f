"""Indices that pass through 32 bits: what Intel's compiler follows, and what it gathers.

The expectations are those of its machine code, as read with version 0.2.
"""

import pytest

from kernelcast.features.analysis import read_facts
from kernelcast.records.kernel import Kernel

_IDS = "const int x = get_global_id(0), y = get_global_id(1), lane = get_local_id(0);"
_PARAMETERS = "global float *a, global float *o, local float *t, int w, int n, uint u"


def find_narrowed(body: str) -> set[str]:
    """Give the texts of the narrowed accesses of a kernel."""
    helper = "float pick(global const float *from, int at) { return from[at]; }"
    source = f"{helper} kernel void k({_PARAMETERS}) {{ {_IDS} {body} }}"
    return {
        one.text for one in read_facts(Kernel(name="k", source=source)).accesses if one.is_narrowed
    }


@pytest.mark.parametrize(
    "body",
    [
        "o[get_global_id(0)] = a[get_global_id(0) + 1];",
        "o[y * w + x] = a[(y + 1) * w + x - 1];",
        "const int i = y * w + x; if (x < w) o[i] = a[i - w];",
        "for (int i = lane; i < n; i += get_local_size(0)) o[w + i] = a[i];",
        "const size_t i = (size_t)y * w + x; o[i] = a[i] + a[i + 1];",
        "const int row = get_local_id(1); t[row * 16 + lane] = 0;",
        "local float tile[8][66]; tile[get_local_id(1)][lane + 1] = 0;",
        "o[y * w] = a[y];",
    ],
)
def test_sums_with_numbers_of_32_bits_are_followed(body: str) -> None:
    """A sum of `int` must not wrap, so that neighbours stay neighbours."""
    assert find_narrowed(body) == set()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("o[x] = 0;", "o[x]"),
        ("o[x + 1] = 0;", "o[x + 1]"),
        ("o[(size_t)y * w + x] = 0;", "o[(size_t)y * w + x]"),
        ("const size_t i = (size_t)y * w + x; if (x >= 2) o[i] = a[i];", "o[i]"),
        ("const uint i = get_global_id(0) + u; o[i] = 0;", "o[i]"),
        ("const int i = get_global_id(0) + w * get_global_id(1); o[i] = 0;", "o[i]"),
        ("const int s = get_global_size(0); o[y * s + x] = 0;", "o[y * s + x]"),
        ("for (int k = 0; k < n; ++k) t[0] += a[k * w + x];", "a[k * w + x]"),
        ("o[x + w] = a[get_global_id(0)];", "o[x + w]"),
        ("t[lane] = 0;", "t[lane]"),
        ("global const float *row = a + (size_t)y * w + x; t[0] = row[w];", "row[w]"),
        ("o[y * w + x] = pick(a, x);", "from[at]"),
    ],
)
def test_what_is_cut_and_widened_again_is_not_followed(body: str, text: str) -> None:
    """It may wrap: without a sign, cut after a sum, or with nothing but constants added."""
    assert text in find_narrowed(body)
