"""What an answer has cost."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCost:
    """Time that an answer took when it was made, by what it went into.

    Examples
    --------
    >>> cost = AnswerCost(sampling_s=0.01, build_s=0.05, rest_s=0.3)
    >>> round(cost.total_s, 6), round(cost.relative_to(0.5), 6)
    (0.36, 0.72)
    """

    sampling_s: float
    """Device time of the samples, in seconds."""
    build_s: float
    """Host time of the device's compiler, or of finding what it had built, in seconds."""
    rest_s: float
    """Everything else, in seconds: buffers, probes, analysis, counting, pauses between samples, the
    start of a process."""

    @property
    def total_s(self) -> float:
        """All of it, in seconds."""
        return self.sampling_s + self.build_s + self.rest_s

    def relative_to(self, kernel_s: float) -> float:
        """Divide it by the time that the kernel takes, in seconds."""
        return self.total_s / kernel_s

    def to_dict(self, kernel_s: float) -> dict[str, float]:
        """Convert it to plain values, with its multiple of the kernel's predicted time."""
        return {
            "seconds": self.total_s,
            "sampling_seconds": self.sampling_s,
            "build_seconds": self.build_s,
            "rest_seconds": self.rest_s,
            "relative": self.relative_to(kernel_s),
        }
