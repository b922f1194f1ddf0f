"""What ``kernelcast estimate --explain`` prints below its table."""

from collections.abc import Iterator, Mapping, Sequence

from kernelcast.records.contention import Contention
from kernelcast.records.estimates import DeviceAnswer, Estimate
from kernelcast.records.explanation import (
    Explanation,
    HistoryFacts,
    LinearFacts,
    ModelFacts,
    PieceFacts,
    SetAside,
)
from kernelcast.reports.numbers import format_range, format_seconds, format_share

_MOST_LIMITERS = 5
_DIGEST_LETTERS = 12


def list_explanations(answers: Sequence[DeviceAnswer]) -> Iterator[str]:
    """Write the explanation of every answer, line by line."""
    for answer in answers:
        if answer.estimate is not None:
            yield ""
            yield f"{answer.problem} on {answer.device_id}"
            yield from (f"  {line}" for line in _explain(answer.estimate))


def _explain(estimate: Estimate) -> Iterator[str]:
    known = estimate.explain()
    yield f"answered by: {known.tier}"
    yield from (f"evidence: {_describe_piece(one)}" for one in known.pieces)
    if known.evidence:
        yield f"weights and intervals: {known.evidence}"
    for tier, reason in known.missing.items():
        yield f"not by {tier}: {reason}"
    yield "methods: " + _list_times(known.methods_s)
    interval = format_range(estimate.low, estimate.high)
    yield f"interval: {interval} ({format_share(estimate.coverage)}), from {known.interval}"
    if known.contention is not None:
        yield "other programs: " + _describe_contention(known.contention)
    if estimate.now is not None:
        now = estimate.now
        yield f"now: {format_seconds(now.seconds)}, {format_range(now.low, now.high)}"
    yield from _describe_parts(known)
    yield f"cost: {_describe_cost(estimate)}"
    for note in known.notes:
        yield f"note: {note}"


def _describe_piece(one: PieceFacts) -> str:
    when = f", moment {one.moment}" if one.moment else ""
    if one.measured_at is not None:
        when += f" at {one.measured_at:%H:%M:%S} UTC"
    note = f" ({one.note})" if one.note else ""
    return (
        f"{one.kind.replace('_', ' ')} {format_seconds(one.seconds)} +-"
        f"{format_share(one.deviation)}, weight {format_share(one.weight)}{when}{note}"
    )


def _describe_parts(known: Explanation) -> Iterator[str]:
    if known.linear is not None:
        yield "line: " + _describe_line(known.linear)
    if known.model is not None:
        yield "model: " + _describe_model(known.model)
    if known.history is not None:
        yield "history: " + _describe_history(known.history)
        for one in known.history.set_aside:
            yield f"set aside: {_describe_aside(one)}"
    if known.influences:
        shown = (f"{one.feature} x{one.factor:.3f}" for one in known.influences)
        yield "features that matter most: " + ", ".join(shown)
    if known.limiters:
        order = sorted(known.limiters.items(), key=lambda one: -one[1])
        yield "limiters: " + _list_times(dict(order[:_MOST_LIMITERS]))


def _describe_contention(seen: Contention) -> str:
    return (
        f"{seen.others:.1f} threads of theirs wanted to run; the device's waited "
        f"{format_seconds(seen.waited_s)} in {format_seconds(seen.worked_s)} of work, so that "
        f"launches take {seen.slowdown:.2f} times as long as alone"
    )


def _describe_line(line: LinearFacts) -> str:
    work = "even work" if line.is_even else "uneven work"
    if line.is_weighed:
        work += " once weighed by what the source tells"
    return (
        f"{line.launches} launches of {line.p1} to {line.p2} work-groups, {work}; "
        f"{format_seconds(line.rate_s)} a work-group and {format_seconds(line.intercept_s)} a "
        f"launch; standard error {format_seconds(line.standard_error_s)}"
    )


def _describe_model(model: ModelFacts) -> str:
    parts = [f"{model.name} {model.version} of {model.place}"]
    if model.rows is not None:
        parts.append(f"trained on {model.rows} observations")
    if model.data_digest:
        parts.append(f"data {model.data_digest[:_DIGEST_LETTERS]}")
    if model.error is not None:
        parts.append(f"mean error {format_share(model.error)} on kernels held out")
    return ", ".join(parts)


def _describe_history(history: HistoryFacts) -> str:
    text = f"{history.observations} observation{'' if history.observations == 1 else 's'}"
    if history.first is None or history.last is None:
        return text
    first, last = (one.isoformat(" ", "seconds") for one in (history.first, history.last))
    return f"{text} from {first}" + ("" if first == last else f" to {last}")


def _describe_aside(one: SetAside) -> str:
    when = "" if one.when is None else f" of {one.when.isoformat(' ', 'seconds')}"
    key = f" (key {one.key[:_DIGEST_LETTERS]})" if one.key else ""
    return f"{format_seconds(one.seconds)}{when}{key}: {one.reason}"


def _describe_cost(estimate: Estimate) -> str:
    cost = estimate.cost
    if not cost.total_s:
        return "nothing was run for it"
    parts = [
        f"samples {format_seconds(cost.sampling_s)} on the device",
        f"build {format_seconds(cost.build_s)}",
        f"the rest {format_seconds(cost.rest_s)}",
        f"together {format_share(cost.relative_to(estimate.seconds))} of the predicted time",
    ]
    if estimate.compile_seconds is not None:
        parts.append(f"building the kernel anew takes {format_seconds(estimate.compile_seconds)}")
    return ", ".join(parts)


def _list_times(times_s: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {format_seconds(seconds)}" for name, seconds in times_s.items())
