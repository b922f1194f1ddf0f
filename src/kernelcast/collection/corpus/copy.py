"""Writes kernels of the corpus as plain problem files, generated inputs beside them."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kernelcast.collection.corpus.corpus import prepare_launch
from kernelcast.records.errors import InputError
from kernelcast.training_data.applications import CorpusKernel

_HEADER = "# {name} of kernelcast's corpus, with its inputs made for these parameters.\n"


def write_runnable_copy(
    kernel: CorpusKernel, folder: Path, *, parameters: Mapping[str, int] | None = None
) -> Path:
    """Write a kernel's problem file, source and inputs into ``folder/<application>/<stem>``.

    Parameters
    ----------
    folder : Path
        Is made if it is not there; files of an earlier copy are replaced.
    parameters : mapping of str to int, optional
        Values that replace those of the problem file; names it does not have are left out, so
        that several kernels can be given the same.

    Returns
    -------
    Path
        The problem file written, ready for ``kernelcast estimate``.

    Raises
    ------
    InputError
        If the folder cannot be written or the parameters do not fit.
    """
    content = yaml.safe_load(kernel.problem_path.read_text(encoding="utf-8"))
    known = content.get("parameters") or {}
    chosen = {name: value for name, value in (parameters or {}).items() if name in known}
    target = folder / kernel.application / kernel.stem
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="making-", dir=target) as cache:
            prepared = prepare_launch(
                kernel, chosen, local_size=_local_size(kernel, chosen), cache_folder=Path(cache)
            )
            if prepared.inputs_folder is not None:
                for path in prepared.inputs_folder.glob("*.npy"):
                    path.replace(target / path.name)
        content["parameters"] = {**known, **prepared.replaced}
        return _write(kernel, content, target)
    except OSError as error:
        msg = f"{target}: cannot be written: {error.strerror or error}"
        raise InputError(msg) from error


def _local_size(kernel: CorpusKernel, chosen: Mapping[str, int]) -> tuple[int, ...]:
    usual = kernel.local_sizes[0]
    return tuple(chosen.get(f"LOCAL{axis}", extent) for axis, extent in enumerate(usual))


def _write(kernel: CorpusKernel, content: dict[str, Any], target: Path) -> Path:
    if "source" in content:
        source = kernel.problem_path.parent / content["source"]
        shutil.copyfile(source, target / source.name)
    path = target / kernel.problem_path.name
    text = yaml.safe_dump(content, sort_keys=False, width=100)
    path.write_text(_HEADER.format(name=kernel.name) + text, encoding="utf-8")
    return path
