"""A folder or URL with versions of models: the latest, a pinned one, and the way back."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.models.persistence.format import StoredModel, read_model, write_model
from kernelcast.models.protocol import FittedModel
from kernelcast.models.validation.report import ValidationReport
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.records.feature_vector import FeatureSchema

_ENDING = ".skops"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRegistry(VersionedFiles):
    """Versions of learned models under a folder or URL."""

    def publish(
        self,
        name: str,
        model: FittedModel,
        schema: FeatureSchema,
        report: ValidationReport | None = None,
        *,
        samplers: Sequence[int] = (),
    ) -> str:
        """Add a version, which becomes the latest; the others stay.

        Parameters
        ----------
        name : str
            Letters, digits, dots and dashes, in folders where it has slashes.
        model : FittedModel
            A trained model of the catalogue.
        schema : FeatureSchema
            Of its features.
        report : ValidationReport, optional
            How good it was found to be.
        samplers : sequence of int
            As in `save_model`.

        Returns
        -------
        str
            The version: a number and the file's digest.
        """
        content = write_model(model, schema, report, samplers=samplers)
        return self.publish_bytes(name, content, _ENDING)

    def load(
        self,
        name: str,
        version: str | None = None,
        schema: FeatureSchema | None = None,
        *,
        sampler: int | None = None,
    ) -> StoredModel:
        """Load a version: the one given, else the pinned one, else the latest.

        Raises
        ------
        ModelFileError
            If there is none, its file is not the one that was published, or it takes another
            schema or samples of other samplers.
        """
        content, url = self.load_bytes(name, version, _ENDING)
        return read_model(content, url, schema, sampler=sampler)
