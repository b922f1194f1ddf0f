"""Trained models as files: nothing in a file is ever executed."""

from kernelcast.models.persistence.files import load_model, save_model
from kernelcast.models.persistence.format import ModelFileError, StoredModel
from kernelcast.models.persistence.registry import ModelRegistry

__all__ = ["ModelFileError", "ModelRegistry", "StoredModel", "load_model", "save_model"]
