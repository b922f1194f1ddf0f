import math

from kernelcast.models.evidence.fusion import Kind, Piece
from kernelcast.predictor.answering.composing import list_contradictions


def test_what_contradicts_each_other_is_named() -> None:
    """Samples that are far from an observation and from other sizes say so; near ones do not."""

    def tell(kind: Kind, seconds: float, deviation: float = 0.1) -> Piece:
        return Piece(kind=kind, log_seconds=math.log(seconds), variance=deviation**2)

    near = [tell(Kind.OBSERVED, 1.0), tell(Kind.SAMPLES, 1.1), tell(Kind.SAMPLES, 1.3)]
    assert list_contradictions(near) == []
    assert list_contradictions([*near, tell(Kind.ANALYTIC, 9.0)]) == []
    assert list_contradictions([tell(Kind.OBSERVED, 1.0), tell(Kind.SAMPLES, 3.0, 1.0)]) == []
    assert list_contradictions([*near, tell(Kind.OTHER_SIZES, 3.0)]) == [
        "observations of the launch say 1.00 s, but other sizes of the kernel say 3.00 s",
        "its samples say 1.20 s, but other sizes of the kernel say 3.00 s",
    ]
