"""Small readers and writers of the service and of its child processes."""

from datetime import UTC, datetime
from http import HTTPStatus

import pytest

from kernelcast.records.errors import CompileError
from kernelcast.service.authentication import parse_token
from kernelcast.service.errors import kind_of, message_of
from kernelcast.service.guard import is_plain_form, is_plain_json, is_text
from kernelcast.service.pages.accuracy import find_served
from kernelcast.service.pages.filters import link_kernel, write_moment, write_rate, write_size
from kernelcast.service.pages.lab.fields import write_argument
from kernelcast.service.redaction import redact_paths
from kernelcast.service_state import StoreError
from kernelcast.service_state.answers import begin_week
from kernelcast.workers.deaths import name_status
from kernelcast.workers.sandbox import keep_harmless

TOKEN = parse_token("kc_0123456789ab_" + "x" * 43)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((is_text("größe"), is_text("a\0b"), is_text("\ud800")), (True, False, False)),
        ((is_plain_json(rb'{"a": "\u0000"}'), is_plain_json(rb'{"a": "\\u0000"}')), (False, True)),
        ((is_plain_json(rb'["\ud83d\ude00"]'), is_plain_json(rb'["\ud83d"]')), (True, False)),
        ([is_plain_form(one) for one in (b"n=a%20b", b"n=%00", b"a=%2500")], [True, False, True]),
        ((TOKEN or ("",))[0], "0123456789ab"),
        (parse_token("password"), None),
        (kind_of(CompileError("no")).code, "compile_error"),
        (kind_of(ZeroDivisionError()).status, HTTPStatus.INTERNAL_SERVER_ERROR),
        (
            message_of(StoreError("postgresql://db.example/rows: connection refused")),
            "the database does not answer as it should; try again in a moment",
        ),
        (write_rate(12.34e9), "12.3 GB/s"),
        (write_moment(datetime(2026, 3, 1, 14, 5, 9, tzinfo=UTC)), "2026-03-01 14:05:09 UTC"),
        ((write_size((1024, 512)), write_size(None)), ("1024 x 512", "unknown size")),
        (link_kernel("polybench/2mm"), "/kernels/of?name=polybench%2F2mm"),
        (
            write_argument({"buffer": "float32", "count": "{N} * 2", "init": "uniform"}),
            'buffer: float32, count: "{N} * 2", init: uniform',
        ),
        (find_served("hybrid/pocl", ["intel", "pocl"]), ["pocl"]),
        (
            redact_paths("no file '/usr/share/x/_kernel.h'; GET /v1/jobs or a/usr/b"),
            "no file '(path withheld)'; GET /v1/jobs or a/usr/b",
        ),
        (begin_week(datetime(2026, 11, 27, 12, tzinfo=UTC)), datetime(2026, 11, 23, tzinfo=UTC)),
        ([name_status(one) for one in (-11, 139, 3)], ["signal SIGSEGV"] * 2 + ["exit status 3"]),
        (keep_harmless({"PGPASSWORD": "x", "POCL_AFFINITY": "1"}), {"POCL_AFFINITY": "1"}),
    ],
)
def test_a_text_is_read_or_written_as_promised(found: object, expected: object) -> None:
    """Each has one form, whoever reads or writes it."""
    assert found == expected
