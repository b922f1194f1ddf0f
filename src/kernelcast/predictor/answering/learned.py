"""What a learned model has led to: a correction of what samples say, or why there is none."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from kernelcast.predictor.answering.trained_models import FoundModel
from kernelcast.records.estimates import Interval
from kernelcast.records.explanation import Influence, ModelFacts

_NO_MODEL = "no learned model of this device is installed (`kernelcast train` makes one)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """How a learned model moves what samples say.

    Parameters
    ----------
    log_factor : float
        Logarithm of its answer over that of the fused samples.
    in_domain : bool
        Whether the launch resembles those that it was trained on; else it moves nothing.
    interval : Interval
        Its answer with its own interval.
    """

    log_factor: float
    in_domain: bool
    interval: Interval


class Influences(Sequence[Influence]):
    """Influences that are found when somebody looks at them: that takes longer than an answer.

    Parameters
    ----------
    find : callable
        Finds them.
    """

    def __init__(self, find: Callable[[], tuple[Influence, ...]]) -> None:
        self._find = find

    @cached_property
    def _found(self) -> tuple[Influence, ...]:
        return self._find()

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, place: int) -> Influence: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Influence, ...]: ...
    def __getitem__(self, place: int | slice) -> Influence | tuple[Influence, ...]:
        return self._found[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._found == tuple(other)

    def __hash__(self) -> int:
        return hash(self._found)

    def __reduce__(self) -> tuple[object, ...]:
        return tuple, (self._found,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a learned model has led to.

    Parameters
    ----------
    found : FoundModel or None
        The model, where there is one.
    correction : Correction or None
        Its answer.
    influences : sequence of Influence
        Features that matter most to it.
    failure : str
        What went wrong, if something did.
    absence : str
        Why there is no answer although nothing went wrong.
    passed_over : str
        Why models that would have been better cannot be used.
    """

    found: FoundModel | None = None
    correction: Correction | None = None
    influences: Sequence[Influence] = ()
    failure: str = ""
    absence: str = _NO_MODEL
    passed_over: str = ""

    @property
    def facts(self) -> ModelFacts | None:
        """What is known of the model."""
        return None if self.found is None else self.found.facts

    @property
    def seconds(self) -> float | None:
        """Its answer, in seconds."""
        return None if self.correction is None else self.correction.interval.seconds


def correct(log_seconds: float, interval: Interval, *, in_domain: bool) -> Correction:
    """Give how a model's answer moves what fused samples say."""
    return Correction(
        log_factor=math.log(interval.seconds) - log_seconds,
        in_domain=in_domain,
        interval=interval,
    )
