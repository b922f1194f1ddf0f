"""Evidence models as JSON, numbers and names only, and their versions in a registry."""

import json
from collections.abc import Mapping
from typing import Any

from kernelcast.models.conformal import restore_calibration
from kernelcast.models.evidence.model import EvidenceModel, PlainVariance, SharedErrors
from kernelcast.models.evidence.moments import SIGNS, FormVariance
from kernelcast.models.evidence.piece import Kind
from kernelcast.models.evidence.sizes import MEASURES, SizeSettings
from kernelcast.models.regression import regression_from_plain
from kernelcast.models.versioned_files import ModelFileError, VersionedFiles, to_plain
from kernelcast.records.errors import InputError

VERSION = 2
"""Of the format; another is refused."""
_ENDING = ".json"
# Significant digits: more would tell processors apart, on which sums are rounded differently.
_DIGITS = 7
_EXPECTED: Mapping[str, object] = {
    "evidence_model": VERSION, "signs": list(SIGNS), "measures": list(MEASURES)
}  # fmt: skip


def model_to_json(model: EvidenceModel) -> str:
    """Write a model."""
    return json.dumps({**_EXPECTED, **to_plain(model, digits=_DIGITS)}, sort_keys=True)


def model_from_json(text: str) -> EvidenceModel:
    """Read a model; the inverse of `model_to_json`."""
    try:
        held = json.loads(text)
        for name, value in _EXPECTED.items():
            if held.get(name) != value:
                msg = f"{name} is {held.get(name)}, expected {value}"
                raise ValueError(msg)
        return _restore(held)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        msg = f"evidence model: cannot be read ({error}); calibrate again"
        raise InputError(msg) from error


def _restore(held: dict[str, Any]) -> EvidenceModel:
    forms = {
        name: FormVariance(
            **{**one, "centre": tuple(one["centre"]), "slopes": tuple(one["slopes"])}
        )
        for name, one in held["forms"].items()
    }
    correction = held["correction"]
    return EvidenceModel(
        forms=forms,
        shared=SharedErrors(**held["shared"]),
        sizes=SizeSettings(**held["sizes"]),
        plain={Kind(name): PlainVariance(**one) for name, one in held["plain"].items()},
        correction=None if correction is None else regression_from_plain(correction),
        intervals={name: restore_calibration(one) for name, one in held["intervals"].items()},
        widest={name: float(one) for name, one in held["widest"].items()},
        facts=dict(held["facts"]),
        samplers=tuple(map(int, held["samplers"])),
    )


def publish_evidence(files: VersionedFiles, name: str, model: EvidenceModel) -> str:
    """Add a version, which becomes the latest; give it."""
    return files.publish_bytes(name, model_to_json(model).encode(), _ENDING)


def load_evidence(
    files: VersionedFiles, name: str, version: str | None = None, *, sampler: int | None = None
) -> EvidenceModel:
    """Load a version: the one given, else the pinned one, else the latest."""
    content, url = files.load_bytes(name, version, _ENDING)
    try:
        found = model_from_json(content.decode())
    except (InputError, UnicodeDecodeError) as error:
        msg = f"{url}: {error}"
        raise ModelFileError(msg) from error
    if sampler is not None and sampler not in found.samplers:
        known = ", ".join(map(str, found.samplers)) or "none"
        msg = (
            f"{url}: was calibrated with samples of revision {known} of the sampler, not "
            f"{sampler}; `kernelcast train` calibrates anew on rows collected with that"
        )
        raise ModelFileError(msg)
    return found
