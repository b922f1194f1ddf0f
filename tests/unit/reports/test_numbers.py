"""Numbers, names and sources as people read them."""

import pytest

from kernelcast.records.device import Trait, TraitSource
from kernelcast.reports import numbers
from kernelcast.reports.charts import Axis, make_plain, shorten_names
from kernelcast.reports.drawing import write_number
from kernelcast.reports.machine import unit_of, write_interval, write_trait
from kernelcast.reports.source import explain, shorten

CLOCK = Trait(value=1.5e9, low=1.4e9, high=1.6e9, source=TraitSource.MEASURED)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            [numbers.format_duration(one) for one in (42.3, 125, 3725)],
            ["42 s", "2 min", "1 h 2 min"],
        ),
        (
            (numbers.format_share(0.0194), numbers.format_share(0.5, signed=True)),
            ("1.9 %", "+50.0 %"),
        ),
        ((numbers.format_error(0.0476), numbers.format_error(None)), ("4.76 %", "-")),
        (numbers.format_points(0.0497), "+4.97"),
        (
            (numbers.format_class(0.0, 0.05), numbers.format_class(0.1, None)),
            ("0 - 5 %", "over 10 %"),
        ),
        (
            [numbers.format_bytes(one) for one in (32768, 100, 8667136)],
            ["32 KiB", "100 B", "8.27 MiB"],
        ),
        (
            [numbers.format_count(one) for one in (0, 92.0, 0.98765, 1472, 23552, 1.5e6, 0.0004)],
            ["0", "92", "0.988", "1,472", "23.6k", "1.50M", "0.0004"],
        ),
        (numbers.format_whole(16777216), "16,777,216"),
        (
            [numbers.format_value(one) for one in (541696.0, 2.3145365, None)],
            ["541,696", "2.31454", "-"],
        ),
        (write_number(0.0125, Axis(title="time", unit="s")), "12.5 ms"),
        (make_plain("a\x01b"), "a?b"),
        (
            shorten_names(["a/x/run", "a/y/run", "b/y/run", "a/y/triad", "a/" + "long_" * 9]),
            {
                "a/x/run": "x/run",
                "a/y/run": "a/y/run",
                "b/y/run": "b/y/run",
                "a/y/triad": "triad",
                "a/" + "long_" * 9: "long_long_lon…g_long_long_",
            },
        ),
        (unit_of("load_bytes_per_s", 2.5e10), (1e9, "GB/s")),
        (
            (write_trait("clock_hz", CLOCK), write_interval("clock_hz", CLOCK)),
            ("1.5 GHz", "1.4 - 1.6"),
        ),
        (
            shorten("4*n*global_id(1) + local_id(0) + 64*iteration(1:line 21)"),
            "4*n*gid.y + lid.x + 64*it21",
        ),
        (shorten("unknown(bins)"), "data in bins"),
        (
            explain(["a[lid.x + 16*it21]", "b[lid.x]"]),
            "lid: local id; it21: iteration of the loop in line 21, from 0",
        ),
    ],
)
def test_values_read_as_people_write_them(written: object, expected: object) -> None:
    """Each number, name and source has the form that tables and charts show."""
    assert written == expected
