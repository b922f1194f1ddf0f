"""Where long work on a device stands, as those are told who wait for it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    device_id: str
    done: int
    total: int
    """Microbenchmarks, kernels on devices, configurations, or runs while these are measured."""
    title: str = ""
    stage: str = ""
    """What is done with it; empty where it begins."""
    rows: int | None = None
    remaining_s: float | None = None
    """About what the rest will take, in seconds; None as long as nobody knows."""

    @property
    def words(self) -> str:
        return ": ".join(filter(None, [self.title, self.stage]))
