"""What an estimate rests on, as the Lab and the pages of kernels show it."""

import json
from collections.abc import Mapping
from typing import Any, Final

from kernelcast.service.estimating import Outcome
from kernelcast.service.pages.rendering import write_digits, write_seconds, write_share

_TIERS: Final = {
    "history": "this very launch was measured before",
    "sizes": "other sizes of this kernel are known",
    "hybrid": "from samples, corrected by a learned model",
    "linear": "from samples of a few work-groups",
    "learned": "from a model of one's own; nothing was run",
    "analytic": "from the analytic model; nothing was run",
}


def read_answer(outcome: Outcome) -> dict[str, Any]:
    """Give an answer's values, with what the template needs beside them."""
    held: dict[str, Any] = json.loads(outcome.content)
    error = held.get("error")
    return {
        **held,
        "error": error,
        "is_kept": held.get("is_kept", False),
        "tier_words": _TIERS.get(held.get("tier", ""), held.get("tier", "")),
        "needs_run": error is not None and error["code"] == "missing_scope",
        **describe_explanation(held),
    }


def describe_explanation(held: Mapping[str, Any]) -> dict[str, Any]:
    """Give what the evidence of an estimate's values is shown by."""
    explanation = held.get("explanation") or {}
    # Weights of pieces are drawn as bars, their other keys are columns.
    pieces = explanation.get("pieces")
    if not isinstance(pieces, list) or not all(isinstance(one, dict) for one in pieces):
        pieces = []
    columns = list(dict.fromkeys(name for one in pieces for name in one if name != "weight"))
    return {
        "tier": held.get("tier", ""),
        "seconds": held.get("seconds"),
        "limiters": list_limiters(explanation.get("limiters") or {}),
        "methods": {
            name: seconds
            for name, seconds in (held.get("estimates") or {}).items()
            if seconds is not None
        },
        "missing": explanation.get("missing") or {},
        "notes": explanation.get("notes") or [],
        "interval": explanation.get("interval") or "",
        "facts": [
            (f"{part}: {name.replace('_', ' ')}", _write(name, value))
            for part in ("linear", "model", "history")
            for name, value in (explanation.get(part) or {}).items()
            if value is not None and not isinstance(value, dict | list)
        ],
        "piece_columns": [name.removesuffix("_s").replace("_", " ") for name in columns],
        "pieces": [
            (float(one.get("weight") or 0.0), [_write(name, one.get(name)) for name in columns])
            for one in pieces
        ],
    }


def find_end(held: Mapping[str, Any]) -> float:
    """Give the largest time that an answer names: the end of an interval, alone or now."""
    ends = [one.get("high") for one in (held, held.get("now") or {})]
    return max((float(one) for one in ends if one is not None), default=0.0)


def _write(name: str, value: object) -> str:
    """Write a value as its name says."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        if name.endswith(("_s", "seconds")):
            return write_seconds(value)
        if name in {"weight", "coverage", "share"}:
            return write_share(value)
        return write_digits(value)
    if isinstance(value, list):
        return ", ".join(_write("", one) for one in value)
    return str(value)


def list_limiters(limiters: Mapping[str, float]) -> list[dict[str, Any]]:
    """Sort limiters, those that take time, the longest first, with shares of that one."""
    longest = max(limiters.values(), default=0.0)
    return [
        {"name": name, "seconds": seconds, "share": seconds / longest}
        for name, seconds in sorted(limiters.items(), key=lambda one: -one[1])
        if seconds > 0
    ]
