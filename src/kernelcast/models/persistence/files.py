"""Reads and writes model files, in folders and behind URLs."""

from collections.abc import Sequence
from pathlib import Path

from kernelcast.models.persistence.format import (
    ModelFileError,
    StoredModel,
    read_model,
    write_model,
)
from kernelcast.models.protocol import FittedModel
from kernelcast.models.validation.report import ValidationReport
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.private_files import make_private_folder


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


def is_local(url: str) -> bool:
    """Tell a plain path from a URL; paths need no fsspec, which takes a while to import."""
    return "://" not in url and "::" not in url


def read_bytes(url: str) -> bytes:
    """Read a file.

    Raises
    ------
    ModelFileError
        If it cannot be read.
    """
    try:
        if is_local(url):
            return Path(url).expanduser().read_bytes()
        import fsspec

        with fsspec.open(url, "rb") as file:
            content: bytes = file.read()
    except (OSError, ValueError, ImportError) as error:
        msg = f"{url}: cannot be read ({error}); is the path right?"
        raise ModelFileError(msg) from error
    return content


def write_bytes(url: str, content: bytes) -> None:
    """Write a file so that readers see all of it or nothing.

    Raises
    ------
    ModelFileError
        If it cannot be written.
    """
    import fsspec

    try:
        files, path = fsspec.core.url_to_fs(url)
        if is_local(url):
            make_private_folder(Path(path).parent)
        files.makedirs(files._parent(path), exist_ok=True)  # noqa: SLF001  # fsspec's own way
        part = f"{path}.part"
        with files.open(part, "wb") as file:
            file.write(content)
        files.mv(part, path)
    except (OSError, ValueError, ImportError) as error:
        msg = f"{url}: cannot be written ({error}); may this folder be written to?"
        raise ModelFileError(msg) from error
