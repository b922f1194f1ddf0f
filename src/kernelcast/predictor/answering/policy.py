"""What may be used for an answer: what may run, which evidence and methods, how long."""

from dataclasses import dataclass, field

from kernelcast.launches.settings import DEFAULT_TIMEOUT_S, EstimateSettings
from kernelcast.records.errors import InputError
from kernelcast.records.explanation import Tier

BESIDE = ("two_point", "pooled_rate")
"""Methods that never answer themselves."""
METHODS = (*(one.value for one in Tier), *BESIDE)
"""Methods that need no name of their own in a registry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodChoice:
    """Which methods are wanted."""

    wanted: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if self.wanted is not None and not any(one.value in self.wanted for one in Tier):
            msg = (
                f"methods {', '.join(sorted(self.wanted)) or 'none'}: give at least one of "
                f"{', '.join(Tier)}, which the answer comes from"
            )
            raise InputError(msg)

    def uses(self, name: str) -> bool:
        """Tell whether a method may answer or stand beside the answer."""
        return self.wanted is None or name in self.wanted

    @property
    def models(self) -> tuple[str, ...]:
        """Models of the registry, beside the hybrid, that are asked."""
        return tuple(sorted((self.wanted or frozenset()) - set(METHODS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What an answer may be made of.

    Parameters
    ----------
    settings : EstimateSettings
        Budget, coverage, seed; whether work-groups may run, and whether observations and learned
        models count.
    methods : MethodChoice
        Which methods answer.
    timeout_s : float
        Time limit of one sampling, in seconds.
    spares_samples : bool
        Whether a launch is sampled at fewer moments, or not at all, where other sizes of its kernel
        tell enough, though its answer is made anew.
    """

    settings: EstimateSettings = field(default_factory=EstimateSettings)
    methods: MethodChoice = field(default_factory=MethodChoice)
    timeout_s: float = DEFAULT_TIMEOUT_S
    spares_samples: bool = False
