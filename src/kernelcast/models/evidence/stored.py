"""An evidence model as JSON: numbers and names only, with the version of the format."""

import json
from dataclasses import asdict
from typing import Any

from kernelcast.models.conformal import restore_calibration
from kernelcast.models.evidence.model import EvidenceModel, PlainVariance, SharedErrors
from kernelcast.models.evidence.moments import SIGNS, FormVariance
from kernelcast.models.evidence.piece import Kind
from kernelcast.models.evidence.sizes import MEASURES, SizeSettings
from kernelcast.records.errors import InputError

VERSION = 1
"""Of the format; another is refused."""


def model_to_json(model: EvidenceModel) -> str:
    """Write a model."""
    return json.dumps({
        "evidence_model": VERSION,
        "signs": list(SIGNS),
        "measures": list(MEASURES),
        "forms": {name: asdict(one) for name, one in model.forms.items()},
        "shared": asdict(model.shared),
        "sizes": asdict(model.sizes),
        "plain": {str(kind): asdict(one) for kind, one in model.plain.items()},
        "intervals": {
            name: {
                key: value if isinstance(value, float) else value.tolist()  # type: ignore[attr-defined]  # arrays are all else
                for key, value in one.state().items()
            }
            for name, one in model.intervals.items()
        },
        "widest": dict(model.widest),
        "facts": dict(model.facts),
        "samplers": list(model.samplers),
    })  # fmt: skip


def model_from_json(text: str) -> EvidenceModel:
    """Read a model; the inverse of `model_to_json`.

    Raises
    ------
    InputError
        If the text is damaged, or of another version, signs or measures of work.
    """
    try:
        found = json.loads(text)
        _check(found)
        return _restore(found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"evidence model: cannot be read ({error}); calibrate again"
        raise InputError(msg) from error


def _check(found: dict[str, Any]) -> None:
    expected = {"evidence_model": VERSION, "signs": list(SIGNS), "measures": list(MEASURES)}
    for name, value in expected.items():
        if found.get(name) != value:
            msg = f"evidence model: {name} is {found.get(name)}, expected {value}; calibrate again"
            raise InputError(msg)


def _restore(found: dict[str, Any]) -> EvidenceModel:
    return EvidenceModel(
        forms={
            name: FormVariance(
                bias=one["bias"],
                level=one["level"],
                centre=tuple(one["centre"]),
                slopes=tuple(one["slopes"]),
            )
            for name, one in found["forms"].items()
        },
        shared=SharedErrors(**found["shared"]),
        sizes=SizeSettings(**found["sizes"]),
        plain={Kind(name): PlainVariance(**one) for name, one in found["plain"].items()},
        intervals={name: restore_calibration(one) for name, one in found["intervals"].items()},
        widest=found.get("widest", {}),  # models of before know none
        facts=found["facts"],
        samplers=tuple(map(int, found["samplers"])),
    )
