"""What somebody may want to do next."""

from collections.abc import Iterator
from dataclasses import dataclass

from kernelcast.service.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the service has."""

    devices: int
    calibrated: int
    observations: int
    models: int
    shifts: int
    asked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something to do, why, and where."""

    title: str
    reason: str
    link: str


def list_steps(known: Known, service: Service) -> Iterator[Step]:
    """Give what to do next, the most useful first."""
    if not known.devices:
        yield Step(
            title="Install an OpenCL driver",
            reason="there is no device here: pip install 'kernelcast[cpu]'",
            link="/devices",
        )
    if known.shifts:
        yield Step(
            title="Look at launches that have changed",
            reason=f"{known.shifts} took another time than before, for good",
            link="/accuracy?source=answers",
        )
    if not known.asked:
        yield Step(
            title="Ask for an estimate", reason="this process has answered none yet", link="/lab"
        )
    if known.calibrated < known.devices:
        yield Step(
            title="Calibrate a device",
            reason=f"{known.devices - known.calibrated} of {known.devices} have no limiters and "
            "need samples for every answer",
            link="/devices",
        )
    if not known.observations:
        yield Step(
            title="Start a collection",
            reason="there are no observations: nothing answers from history, nothing can be judged",
            link="/jobs?new=collect#start",
        )
    elif not known.models:
        yield Step(
            title="Train a model",
            reason=f"{known.observations:,} observations wait to be learned from",
            link="/jobs?new=train#start",
        )
    if not service.settings.allow_run:
        yield Step(
            title="Allow samples",
            reason="kernels are not run here: kernelcast serve --allow-run",
            link="/lab",
        )
