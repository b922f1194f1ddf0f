"""Reads the plain part of skops' format: texts, numbers, lists, dictionaries and arrays.

skops itself imports scikit-learn and SciPy to know their types, which takes longer than an
estimate. A model file names none of them, see `kernelcast.models.persistence.format`: what is left
of the format is a tree in JSON, and arrays in NumPy's own format beside it.
"""

import io
import json
import zipfile
from typing import Any

import numpy as np

_PROTOCOL = 2
"""Version of skops' format that is known here."""


def unpack(content: bytes) -> Any:  # noqa: ANN401 - files are nested
    """Give what a file holds; the caller has made sure that it names no types but plain ones."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        tree = json.loads(archive.read("schema.json"))
        if tree["protocol"] == _PROTOCOL:
            return _make(tree, archive)
    # A format of later years: whoever wrote it can read it.
    import skops.io

    return skops.io.loads(content, trusted=[])


def _make(node: dict[str, Any], archive: zipfile.ZipFile) -> Any:  # noqa: ANN401
    loader, inside = node["__loader__"], node.get("content")
    if loader == "DictNode" and isinstance(inside, dict):
        return {name: _make(one, archive) for name, one in inside.items()}
    if loader == "ListNode" and isinstance(inside, list):
        return [_make(one, archive) for one in inside]
    if loader == "JsonNode":
        return json.loads(node["content"])
    if loader == "NdArrayNode":
        return np.load(io.BytesIO(archive.read(node["file"])), allow_pickle=False)
    msg = f"a node of kind {loader} where a value belongs"
    raise ValueError(msg)
