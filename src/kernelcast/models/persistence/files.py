"""Reads and writes model files, in folders and behind URLs."""

from collections.abc import Sequence

from kernelcast.models.persistence.format import StoredModel, read_model, write_model
from kernelcast.models.protocol import FittedModel
from kernelcast.models.validation.report import ValidationReport
from kernelcast.models.versioned_files import read_bytes, write_bytes
from kernelcast.records.feature_vector import FeatureSchema


def save_model(
    model: FittedModel,
    url: str,
    schema: FeatureSchema,
    report: ValidationReport | None = None,
    *,
    samplers: Sequence[int] = (),
) -> None:
    """Write a model file.

    Parameters
    ----------
    model : FittedModel
        A trained model of the catalogue.
    url : str
        Path, or any URL that fsspec writes to.
    schema : FeatureSchema
        Of the features it was trained on.
    report : ValidationReport, optional
        How good it was found to be.
    samplers : sequence of int
        Revisions of the samplers that its rows are of; none where they are not known.

    Raises
    ------
    ModelFileError
        If the file cannot be written.
    InputError
        If the model is none of the catalogue's.
    """
    write_bytes(url, write_model(model, schema, report, samplers=samplers))


def load_model(url: str, schema: FeatureSchema | None = None) -> StoredModel:
    """Read a model file; nothing in it is executed.

    Parameters
    ----------
    url : str
        Path, or any URL that fsspec reads.
    schema : FeatureSchema, optional
        Of the features at hand; see `read_model`.

    Raises
    ------
    ModelFileError
        If there is no such file, it is damaged, foreign, or of another schema.
    """
    return read_model(read_bytes(url), url, schema)
