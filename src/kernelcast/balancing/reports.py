"""Makes the report of a balanced launch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kernelcast.balancing.course import Course
from kernelcast.balancing.players import Player
from kernelcast.balancing.pool import spans_of
from kernelcast.balancing.settings import DevicePlace
from kernelcast.features.write_safety import SplitSafety
from kernelcast.records.balance import Activity, BalanceReport, Bar, DeviceShare
from kernelcast.records.errors import KernelcastError
from kernelcast.records.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseTimes:
    """Times of the host, by the devices' clock: begin, begin of merging, end."""

    started_s: float
    merging_s: float
    ended_s: float


def make_report(  # noqa: PLR0913 - a report has that many sources
    problem: Problem,
    safety: SplitSafety,
    course: Course,
    times: CourseTimes,
    places: Sequence[DevicePlace],
    names: Sequence[str],
    notes: Sequence[str],
    errors: Mapping[int, KernelcastError],
) -> BalanceReport:
    """Put together how a launch went.

    Parameters
    ----------
    problem, safety, course, times
        The launch, how it was cut, what the devices did, and when.
    places, names : sequence
        The devices and their names.
    notes : sequence of str
        What was assumed.
    errors : mapping of int to KernelcastError
        Why devices have failed, by their number.
    """
    total = problem.ndrange.work_group_count
    first_s = course.first_s or times.merging_s
    last_s = max(course.last_s, first_s)
    host = Bar(
        place=len(places),
        activity=Activity.MERGE,
        start_s=times.merging_s,
        end_s=times.ended_s,
    )
    shares = [_describe(player, safety, total) for player in course.players]
    return BalanceReport(
        kernel=problem.kernel.name,
        space=safety.space,
        merges=dict(safety.rules),
        shares=tuple(
            replace(
                share,
                device_id=place.device_id,
                device=name,
                cores=place.cores,
                failure=str(errors.get(number, "")),
            )
            for number, (share, place, name) in enumerate(zip(shares, places, names, strict=True))
        ),
        bars=tuple(
            replace(bar, start_s=bar.start_s - times.started_s, end_s=bar.end_s - times.started_s)
            for bar in (*course.bars, host)
        ),
        estimated_s=None
        if course.estimated_end_s is None
        else max(0.0, course.estimated_end_s - first_s),
        real_s=last_s - first_s,
        prepare_s=first_s - times.started_s,
        merge_s=times.ended_s - times.merging_s,
        total_s=times.ended_s - times.started_s,
        notes=tuple(notes),
    )


def _describe(player: Player, safety: SplitSafety, total: int) -> DeviceShare:
    space = safety.space
    done = space.work_groups(spans_of(player.owned.nonzero()[0]))
    sampled = player.sampled
    return DeviceShare(
        device_id="",
        device="",
        work_groups=done,
        share=done / total,
        estimated_share=player.estimated_share,
        estimated_s=None if sampled is None else sampled.seconds,
        low_s=None if sampled is None else sampled.low_s,
        high_s=None if sampled is None else sampled.high_s,
        real_s=player.real_s,
    )
