"""Trained models as files: nothing in a file is ever executed."""

from kernelcast.models.persistence.files import load_model, save_model
from kernelcast.models.persistence.format import StoredModel
from kernelcast.models.persistence.registry import ModelRegistry
from kernelcast.models.versioned_files import ModelFileError

__all__ = ["ModelFileError", "ModelRegistry", "StoredModel", "load_model", "save_model"]
