"""A model as bytes: a skops file that holds plain values and arrays, and no object at all.

skops keeps a file's structure as JSON and its arrays in NumPy's format, without pickle. A model's
state has no types but numbers, texts, lists, dictionaries and arrays, so a file that names any
other is refused before anything is built from it: there is no list of trusted classes to
maintain, and nothing to trick.
"""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from kernelcast.models.catalogue import make_model
from kernelcast.models.persistence.unpacking import unpack
from kernelcast.models.protocol import FittedModel
from kernelcast.models.restoring import restore_model
from kernelcast.models.validation.report import (
    ValidationReport,
    report_from_json,
    report_to_json,
)
from kernelcast.models.versioned_files import ModelFileError
from kernelcast.models.versions import list_versions
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.observation import FIRST_SAMPLER

FORMAT = "kernelcast model 1"
"""Changes when the state's meaning does."""
_LARGEST_BYTES = 2**30
_LARGEST_SCHEMA_BYTES = 2**24
_DEEPEST = 100
# Loader, module and class of everything that a file may hold.
_ALLOWED = frozenset(
    {
        ("DictNode", "builtins", "dict"),
        ("ListNode", "builtins", "list"),
        ("NdArrayNode", "numpy", "ndarray"),
        ("TypeNode", "builtins", "str"),
        ("JsonNode", "builtins", "str"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    """A trained model and where it comes from."""

    model: FittedModel
    """The model."""
    schema: FeatureSchema
    """Of the features it takes."""
    versions: Mapping[str, str]
    """Libraries that it was trained with."""
    report: ValidationReport | None = None
    """How good it was found to be."""
    samplers: tuple[int, ...] = ()
    """Revisions of the samplers that its rows are of; none where they are not known."""


def write_model(
    model: FittedModel,
    schema: FeatureSchema,
    report: ValidationReport | None = None,
    *,
    samplers: Sequence[int] = (),
) -> bytes:
    """Turn a model into bytes; `read_model` is the inverse."""
    if make_model(model.name) != getattr(model, "model", None):
        msg = f"model {model.name}: differs from the catalogue's of that name; it cannot be stored"
        raise InputError(msg)
    content = {
        "format": FORMAT,
        "model": model.name,
        "schema_names": list(schema.names),
        "schema_version": schema.version,
        "versions": list_versions(),
        "samplers": [int(one) for one in samplers],
        "report": None if report is None else report_to_json(report),
        "state": model.state(),
    }
    import skops.io

    return cast("bytes", skops.io.dumps(_make_plain(content)))


def read_model(
    content: bytes,
    source: str,
    schema: FeatureSchema | None = None,
    *,
    sampler: int | None = None,
) -> StoredModel:
    """Turn bytes into a model; nothing in them is executed.

    Parameters
    ----------
    content : bytes
        Of a file.
    source : str
        Its name, for errors.
    schema : FeatureSchema, optional
        Of the features at hand; any when left out. What the model does not take may be among
        them: features that were added later do not make older models useless.
    sampler : int, optional
        Revision of the sampler at work; any when left out.
    """
    _inspect(content, source)
    try:
        held = unpack(content)
        if held["format"] != FORMAT:
            msg = f"{source}: is of format {held['format']!r}, this program reads {FORMAT!r}"
            raise ModelFileError(msg)
        stored = _restore(held, source, schema)
    except (InputError, OSError, KeyError, TypeError, ValueError, AttributeError,
            zipfile.BadZipFile, RecursionError) as error:  # fmt: skip
        if isinstance(error, ModelFileError):
            raise
        msg = f"{source}: is damaged ({error}); train the model anew, or fetch the file again"
        raise ModelFileError(msg) from error
    if sampler is not None and stored.samplers and stored.samplers != (sampler,):
        msg = (
            f"{source}: the model has learned from samples of revision "
            f"{', '.join(map(str, stored.samplers))} of the sampler, not {sampler}; train it anew "
            "on rows collected with that"
        )
        raise ModelFileError(msg)
    return stored


def _restore(held: dict[str, Any], source: str, schema: FeatureSchema | None) -> StoredModel:
    found = FeatureSchema(names=tuple(held["schema_names"]), version=int(held["schema_version"]))
    if schema is not None and not _covers(schema, found):
        msg = (
            f"{source}: the model takes features of schema {found.id}, not {schema.id}; train it "
            "anew on data of that schema"
        )
        raise ModelFileError(msg)
    report = held["report"]
    return StoredModel(
        model=restore_model(make_model(str(held["model"])), held["state"]),
        schema=found,
        versions={str(name): str(one) for name, one in held["versions"].items()},
        report=None if report is None else report_from_json(report),
        samplers=tuple(int(one) for one in held.get("samplers", [FIRST_SAMPLER])),
    )


def _covers(schema: FeatureSchema, wanted: FeatureSchema) -> bool:
    """Tell whether vectors of a schema have room for everything that a model wants."""
    return schema.version == wanted.version and {*wanted.names} <= {*schema.names}


def _inspect(content: bytes, source: str) -> None:
    """Refuse a file that is no archive, too large, or names a type that no model has."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(one.file_size for one in archive.infolist())
            schema_size = archive.getinfo("schema.json").file_size
            if size > _LARGEST_BYTES or schema_size > _LARGEST_SCHEMA_BYTES:
                msg = f"{source}: would take {size} bytes unpacked; models are smaller"
                raise ModelFileError(msg)
            broken = archive.testzip()
            tree = json.loads(archive.read("schema.json"))
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, RecursionError, EOFError,
            NotImplementedError, RuntimeError) as error:  # fmt: skip
        msg = f"{source}: is no model file, or was cut off ({error})"
        raise ModelFileError(msg) from error
    if broken is not None:
        msg = f"{source}: is damaged: the checksum of {broken} is wrong; fetch the file again"
        raise ModelFileError(msg)
    foreign = sorted(_find_foreign(tree, _DEEPEST))
    if foreign:
        msg = (
            f"{source}: holds {', '.join(foreign)}, which no model of ours does; it was not "
            "opened, since it might run code"
        )
        raise ModelFileError(msg)


def _find_foreign(node: object, depth: int) -> set[str]:
    """List what a file's structure names beside what is allowed."""
    if not depth:
        return {"structures nested too deep"}
    if isinstance(node, list):
        return set().union(*(_find_foreign(one, depth - 1) for one in node))
    if not isinstance(node, dict):
        return set()
    found = set().union(*(_find_foreign(one, depth - 1) for one in node.values()))
    if "__loader__" in node or "__class__" in node or "__module__" in node:
        parts = tuple(str(node.get(f"__{one}__")) for one in ("loader", "module", "class"))
        # Arrays of objects come as JSON: numbers come in NumPy's own format.
        is_array = parts[0] == "NdArrayNode"
        if parts not in _ALLOWED or (is_array and node.get("type") != "numpy"):
            found.add(f"{parts[1]}.{parts[2]} ({parts[0]})")
    return found


def _make_plain(value: Any) -> Any:  # noqa: ANN401  # states are nested
    """Turn NumPy's scalars into Python's, and tuples into lists."""
    if isinstance(value, Mapping):
        return {str(name): _make_plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_make_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value
