import json
from typing import Any

import numpy as np
import pytest

from kernelcast.collection.collection import Message
from kernelcast.records.device import Trait, TraitSource
from kernelcast.records.machine import DevicePeaks
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)
from kernelcast.records.samples import SampleRun
from kernelcast.workers.wire import NotDecodableError, decode, encode
from support.builders import make_description, make_sample_run
from support.observations import make_failure, make_launch, make_observation

RUN = make_sample_run([(0, 2, 0.1), (0, 3, 1 / 3)], work_groups=100)
COUNTS = OperationCounts(
    operations={Operation(kind=OperationKind.ADD, number=NumberClass.FLOAT, bits=32): 2.5},
    memory={MemoryOperation(space=MemorySpace.GLOBAL, is_store=True, bytes=4): 1.0},
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (RUN, SampleRun),
        (make_description(), type(make_description())),
        (make_launch(1), Message),
        (make_observation(1), Message),
        ("12 work-groups", Message),
        (make_failure(1), Message),
        (COUNTS, OperationCounts),
        (Trait(value=1.0 / 3, source=TraitSource.MEASURED), Trait[float]),
        (Trait(value=3, source=TraitSource.REPORTED), Trait[int]),
        ((None, frozenset({TraitSource.MEASURED})), tuple[int | None, frozenset[TraitSource]]),
    ],
    ids=lambda one: getattr(one, "__name__", type(one).__name__),
)
def test_records_arrive_as_they_were_sent(value: object, expected: Any) -> None:  # noqa: ANN401
    """Every kind of field comes back with its type and to the last digit."""
    arrived = decode(encode(value), expected)
    assert arrived == value
    assert repr(arrived) == repr(value)  # texts equal the members of an enumeration


def test_only_what_may_be_unknown_may_be_nan() -> None:
    """Peaks of a device that was never calibrated are NaN; a launch's times never are."""
    assert encode(decode(encode(DevicePeaks()), DevicePeaks)) == encode(DevicePeaks())
    held = json.loads(encode(RUN))
    held["launches"][0]["duration_s"] = float("nan")
    with pytest.raises(NotDecodableError, match="finite"):
        decode(json.dumps(held), SampleRun)


def test_numbers_of_numpy_arrive_as_numbers() -> None:
    """A field for a number may hold NumPy's; objects that are no records do not leave the child."""
    sent = (np.float64(0.1), np.int64(3), np.bool_(True))
    assert decode(encode(sent), tuple[float, int, bool]) == (0.1, 3, True)
    with pytest.raises(TypeError, match="cannot be sent"):
        encode({"a": object()})
