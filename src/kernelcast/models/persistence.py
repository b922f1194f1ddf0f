"""Trained models as files of JSON: numbers and texts only, so that nothing in one is executed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kernelcast.models.time_models import FittedModel, TimeModel, make_model
from kernelcast.models.validation.report import ValidationReport, report_to_json
from kernelcast.models.versioned_files import CONVERTER, Document, ModelFileError, list_versions
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema

# A model of the catalogue is its name.
CONVERTER.register_unstructure_hook(TimeModel, lambda model: model.name)
CONVERTER.register_structure_hook(TimeModel, lambda name, _: make_model(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    """A model as `train` makes it and a file holds it; its facts say what it has learned from."""

    name: str
    """What it is published under: ``model/device``, or the model alone where it serves all."""
    model: FittedModel
    report: ValidationReport | None = None
    samplers: tuple[int, ...] = ()
    """Revisions of the samplers that its rows are of; none where they are not known."""
    versions: Mapping[str, str] = field(default_factory=list_versions)

    def require(self, schema: FeatureSchema | None, sampler: int) -> None:
        """Refuse features that it does not know, and samples of another sampler."""
        found = self.model.schema
        if schema is not None and not (
            schema.version == found.version and {*found.names} <= {*schema.names}
        ):
            raise ModelFileError(
                f"{self.name}: the model takes features of schema {found.id}, not {schema.id}; "
                "train it anew on data of that schema"
            )
        if self.samplers and self.samplers != (sampler,):
            raise ModelFileError(
                f"{self.name}: the model has learned from samples of revision "
                f"{', '.join(map(str, self.samplers))} of the sampler, not {sampler}; train it "
                "anew on rows collected with that"
            )

    def describe(self) -> dict[str, Any]:
        return {
            "schema": self.model.schema.id,
            "features": list(self.model.schema.names),
            "learned": self.model.describe(),
            "trained_with": dict(self.versions),
            "validation": None if self.report is None else json.loads(report_to_json(self.report)),
        }


_DOCUMENT: Final = Document(
    kind=StoredModel, what="model", header={"format": "kernelcast model 3"},
    advice="train the model anew",
)  # fmt: skip


def write_model(stored: StoredModel) -> str:
    model = stored.model
    if make_model(model.name) != model.model:
        msg = f"model {model.name}: differs from the catalogue's of that name; it cannot be stored"
        raise InputError(msg)
    return _DOCUMENT.write(stored)


read_model = _DOCUMENT.read
