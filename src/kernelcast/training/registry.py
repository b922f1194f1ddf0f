"""Where trained models are kept, under which names, and which there are."""

import os
import re
from hashlib import sha256
from typing import TYPE_CHECKING

from kernelcast.launches.data_folder import data_folder
from kernelcast.models.versioned_files import ModelVersions as ModelVersions  # for services
from kernelcast.models.versioned_files import VersionedFiles

if TYPE_CHECKING:
    from kernelcast.models.validation.report import StoredModel

MODELS_VARIABLE = "KERNELCAST_MODELS"
"""Environment variable that names another registry, for instance one that machines share."""
EVIDENCE = "evidence"
"""Evidence models are published under names that begin so."""
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


def choose_registry(url: str | None = None) -> str:
    """Return the registry's place: the one named, what `MODELS_VARIABLE` names, or the user's."""
    return url or os.environ.get(MODELS_VARIABLE) or str(data_folder() / "models")


def open_registry(url: str | None = None) -> VersionedFiles:
    """Open a registry; the place need not exist yet."""
    return VersionedFiles(url=choose_registry(url))


def load_model(registry: VersionedFiles, name: str, version: str | None = None) -> "StoredModel":
    """Load a version of a trained model: the one given, else the pinned one, else the latest."""
    from kernelcast.models.validation.report import read_model  # slow to import

    return read_model(*registry.load(name, version))


def name_model(model: str, device: str | None = None) -> str:
    """Return the name that a model of one device, or of all, is published under."""
    if device is None:
        return model
    plain = _UNFIT.sub("-", device).strip("-._")
    if plain != device or not plain:  # two devices must not share a name
        digest = sha256(device.encode()).hexdigest()[:8]
        plain = f"{plain}-{digest}".lstrip("-")
    return f"{model}/{plain}"


def name_runtime(device_id: str) -> str:
    return device_id.split("-", 1)[0]


def list_evidence_names(device_id: str, *, is_cpu: bool) -> tuple[str, ...]:
    """Return the names of evidence models that serve a device, the best first."""
    found = (
        name_model(EVIDENCE, device_id),
        name_model(f"{EVIDENCE}_runtime", name_runtime(device_id)),
    )
    return (*found, f"{EVIDENCE}_cpu") if is_cpu else found


def is_evidence(name: str) -> bool:
    return name.split("/", 1)[0] in {EVIDENCE, f"{EVIDENCE}_runtime", f"{EVIDENCE}_cpu"}
