"""Evidence models as JSON, numbers and names only, and their versions in a registry."""

import json
from collections.abc import Mapping

from kernelcast.models.evidence.model import EvidenceModel
from kernelcast.models.evidence.moments import SIGNS
from kernelcast.models.evidence.sizes import MEASURES
from kernelcast.models.versioned_files import (
    ModelFileError,
    VersionedFiles,
    from_plain,
    to_plain,
)
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
        fields = {name: one for name, one in held.items() if name not in _EXPECTED}
        return from_plain(EvidenceModel, fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        msg = f"evidence model: cannot be read ({error}); calibrate again"
        raise InputError(msg) from error


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
