"""Trained models as files of JSON: numbers and texts only, so that nothing in one is executed."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kernelcast.models.conformal import Calibration
from kernelcast.models.regression import FittedRegression
from kernelcast.models.time_models import FittedModel, make_model
from kernelcast.models.validation.report import (
    ValidationReport,
    report_from_json,
    report_to_json,
)
from kernelcast.models.versioned_files import (
    ModelFileError,
    VersionedFiles,
    from_plain,
    list_versions,
    to_plain,
)
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema

FORMAT: Final = "kernelcast model 2"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    model: FittedModel
    versions: Mapping[str, str]
    report: ValidationReport | None = None
    samplers: tuple[int, ...] = ()
    """Revisions of the samplers that its rows are of; none where they are not known."""

    def describe(self) -> dict[str, Any]:
        """List in plain values what it takes, what it has learned, and how good it is."""
        return {
            "schema": self.model.schema.id,
            "features": list(self.model.schema.names),
            "learned": self.model.describe(),
            "trained_with": dict(self.versions),
            "validation": None if self.report is None else json.loads(report_to_json(self.report)),
        }


def write_model(
    model: FittedModel, report: ValidationReport | None = None, *, samplers: Sequence[int] = ()
) -> bytes:
    """Turn a model into bytes; `read_model` is the inverse."""
    if make_model(model.name) != model.model:
        msg = f"model {model.name}: differs from the catalogue's of that name; it cannot be stored"
        raise InputError(msg)
    return json.dumps({
        "format": FORMAT,
        "model": model.name,
        "schema_names": list(model.schema.names),
        "schema_version": model.schema.version,
        "versions": list_versions(),
        "samplers": [int(one) for one in samplers],
        "report": None if report is None else report_to_json(report),
        "correction": None if model.correction is None else to_plain(model.correction),
        "calibration": to_plain(model.calibration),
        "facts": to_plain(model.facts),
        "launches": [[*launch, *told] for launch, told in sorted(model.launches.items())],
    }).encode()  # fmt: skip


def read_model(
    content: bytes,
    source: str,
    schema: FeatureSchema | None = None,
    *,
    sampler: int | None = None,
) -> StoredModel:
    try:
        if len(content) > 2**30:
            msg = f"{len(content)} bytes; models are smaller"
            raise ValueError(msg)
        held = json.loads(content)
        if held["format"] != FORMAT:
            msg = f"{source}: is of format {held['format']!r}, this program reads {FORMAT!r}"
            raise ModelFileError(msg)
        features = FeatureSchema(
            names=tuple(held["schema_names"]), version=int(held["schema_version"])
        )
        correction, report = held["correction"], held["report"]
        launches = {
            (str(problem), str(device)): (float(seconds), float(noise))
            for problem, device, seconds, noise in held["launches"]
        }
        if not all(seconds > 0 and math.isfinite(noise) for seconds, noise in launches.values()):
            raise ValueError("launches without a time")
        stored = StoredModel(
            model=FittedModel(
                model=make_model(str(held["model"])),
                schema=features,
                correction=None if correction is None else from_plain(FittedRegression, correction),
                calibration=from_plain(Calibration, held["calibration"]),
                facts=dict(held["facts"]),
                launches=launches,
            ),
            versions={str(name): str(one) for name, one in held["versions"].items()},
            report=None if report is None else report_from_json(report),
            samplers=tuple(int(one) for one in held["samplers"]),
        )
    except ModelFileError:
        raise
    except (InputError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        msg = f"{source}: is no model file, or is damaged ({error!r:.200}); train the model anew"
        raise ModelFileError(msg) from error
    found = stored.model.schema
    if schema is not None and not (
        schema.version == found.version and {*found.names} <= {*schema.names}
    ):
        msg = (
            f"{source}: the model takes features of schema {found.id}, not {schema.id}; train it "
            "anew on data of that schema"
        )
        raise ModelFileError(msg)
    if sampler is not None and stored.samplers and stored.samplers != (sampler,):
        msg = (
            f"{source}: the model has learned from samples of revision "
            f"{', '.join(map(str, stored.samplers))} of the sampler, not {sampler}; train it anew "
            "on rows collected with that"
        )
        raise ModelFileError(msg)
    return stored


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRegistry(VersionedFiles):
    """Versions of learned models under a folder or URL."""

    def publish(
        self,
        name: str,
        model: FittedModel,
        report: ValidationReport | None = None,
        *,
        samplers: Sequence[int] = (),
    ) -> str:
        """Add a version, which becomes the latest; return its number and the file's digest."""
        return self.publish_bytes(name, write_model(model, report, samplers=samplers))

    def load(
        self,
        name: str,
        version: str | None = None,
        schema: FeatureSchema | None = None,
        *,
        sampler: int | None = None,
    ) -> StoredModel:
        """Load a version: the one given, else the pinned one, else the latest; see `read_model`."""
        content, url = self.load_bytes(name, version)
        return read_model(content, url, schema, sampler=sampler)
