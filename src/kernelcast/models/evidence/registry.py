"""Versions of evidence models beside those of learned ones, in the same folders or URLs."""

from kernelcast.models.evidence.model import EvidenceModel
from kernelcast.models.evidence.stored import model_from_json, model_to_json
from kernelcast.models.versioned_files import ModelFileError, VersionedFiles
from kernelcast.records.errors import InputError

_ENDING = ".json"


def publish_evidence(files: VersionedFiles, name: str, model: EvidenceModel) -> str:
    """Add a version, which becomes the latest; give it."""
    return files.publish_bytes(name, model_to_json(model).encode(), _ENDING)


def load_evidence(
    files: VersionedFiles, name: str, version: str | None = None, *, sampler: int | None = None
) -> EvidenceModel:
    """Load a version: the one given, else the pinned one, else the latest.

    Parameters
    ----------
    files : VersionedFiles
        Where it is.
    name, version : str
        Which.
    sampler : int, optional
        Revision of the sampler at work; any when left out.

    Raises
    ------
    ModelFileError
        If there is none, its file is damaged or not the one that was published, or it was
        calibrated with samples of other samplers.
    """
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
