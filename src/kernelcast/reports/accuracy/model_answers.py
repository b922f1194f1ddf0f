"""Learned models in use."""

from dataclasses import dataclass

from kernelcast.models.persistence import ModelRegistry
from kernelcast.predictor.answering.trained_models import find_shipped
from kernelcast.training.registry import choose_registry, list_models


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedModel:
    """A model that estimates may use."""

    name: str
    """``model/device``, or the model alone where it serves all devices."""
    version: str
    """The one in use."""
    is_shipped: bool
    """Whether it came with the package."""


def list_used_models(registry: str | None = None) -> tuple[UsedModel, ...]:
    """Give the models in use: those of the registry, then those shipped that it does not have."""
    found: dict[str, UsedModel] = {}
    for place, is_shipped in ((choose_registry(registry), False), (find_shipped(), True)):
        for one in list_models(ModelRegistry(url=place)):
            if one.used is not None and one.name not in found:
                found[one.name] = UsedModel(name=one.name, version=one.used, is_shipped=is_shipped)
    return tuple(found.values())
