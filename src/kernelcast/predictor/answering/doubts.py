"""What an answer says of observations that are not believed, or only since they have repeated."""

from dataclasses import replace
from typing import Final

from kernelcast.records.estimates import Estimate, Tier
from kernelcast.records.explanation import HistoryFacts, SetAside

NO_HISTORY: Final = "this launch was not observed before"
NOT_BELIEVED: Final = "what was observed of this launch is not believed"
_MOST_NAMED: Final = 3
_KEY_LETTERS: Final = 12


def list_doubts(facts: HistoryFacts | None) -> tuple[str, ...]:
    """Name the observations that are set aside, and what those believed contradict."""
    if facts is None:
        return ()
    found = []
    if facts.contradiction:
        found.append(
            f"observations are believed since they have repeated, although {facts.contradiction}"
        )
    if facts.set_aside:
        count = len(facts.set_aside)
        named = [_describe(one) for one in facts.set_aside[-_MOST_NAMED:]]
        more = [f"{count - _MOST_NAMED} more"] if count > _MOST_NAMED else []
        what = "observation is" if count == 1 else "observations are"
        listed = "; ".join([*named, *more])
        found.append(f"{count} {what} set aside, not believed: {listed}")
    return tuple(found)


def update_doubts(estimate: Estimate, facts: HistoryFacts) -> Estimate:
    """Have an answer that rests on no observation say which observations are not believed now."""
    known = estimate.explain()
    old, new = list_doubts(known.history), list_doubts(facts)
    if old == new:
        return estimate
    kept = [one for one in estimate.warnings if one not in old]
    absence = NOT_BELIEVED if facts.set_aside else NO_HISTORY
    is_observed = facts.observations or facts.set_aside
    known = replace(
        known,
        history=facts if is_observed else None,
        missing={**known.missing, Tier.HISTORY.value: absence},
    )
    return replace(estimate, warnings=(*kept, *new), explanation=known)


def _describe(one: SetAside) -> str:
    when = "" if one.when is None else f" of {one.when.isoformat(' ', 'seconds')}"
    key = f" (key {one.key[:_KEY_LETTERS]})" if one.key else ""
    return f"{one.seconds:.3g} s{when}{key}, but {one.reason}"
