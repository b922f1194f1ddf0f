"""Makes problems of the corpus's kernels: parameters, local size, and generated inputs, kept."""

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from kernelcast.launches.data_folder import data_folder
from kernelcast.launches.problem_file import read_parameters, read_problem
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import MAX_DIMENSIONS
from kernelcast.records.private_files import make_private_folder
from kernelcast.records.problem import Problem
from kernelcast.training_data.applications import CorpusKernel, InputMaker, load_input_maker

LOCAL_PARAMETERS = tuple(f"LOCAL{axis}" for axis in range(MAX_DIMENSIONS))


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedProblem:
    problem: Problem
    parameters: Mapping[str, int]
    """All parameters of the problem file, those that follow from others and from the inputs
    included."""
    replaced: Mapping[str, int]
    """Those of them that are not as the problem file has them: given, of the local size, of the
    inputs."""
    inputs_folder: Path | None


def prepare_launch(
    kernel: CorpusKernel,
    parameters: Mapping[str, int],
    *,
    local_size: tuple[int, ...],
    cache_folder: Path | None = None,
) -> PreparedProblem:
    """Make the problem of a corpus kernel with any of its parameters replaced.

    Generated inputs are kept in `cache_folder`, else in the data folder.
    """
    known = read_parameters(kernel.problem_path)
    extents = dict(zip(LOCAL_PARAMETERS, local_size, strict=False))
    chosen = dict(parameters) | {name: one for name, one in extents.items() if name in known}
    complete = _read_whole_numbers(kernel, chosen)
    make, folder = load_input_maker(kernel), None
    if make is not None:  # parameters may follow from the inputs
        given = {name: value for name, value in complete.items() if name not in LOCAL_PARAMETERS}
        code = (kernel.problem_path.parent / "inputs.py").read_bytes()
        kept_in = cache_folder or data_folder() / "corpus"
        folder, made = keep_inputs(kept_in, kernel.application, given, code, make)
        chosen |= made
    problem = read_problem(kernel.problem_path, parameters=chosen, inputs_folder=folder)
    if problem.ndrange.local_size != tuple(local_size):
        raise InputError(
            f"{kernel.name}: local size {local_size} was asked for, the problem file makes it "
            f'{problem.ndrange.local_size}; it must say `local_size: ["{{LOCAL0}}", ...]`'
        )
    complete = _read_whole_numbers(kernel, chosen)
    return PreparedProblem(
        problem=problem, parameters=complete, replaced=chosen, inputs_folder=folder
    )


def _read_whole_numbers(kernel: CorpusKernel, chosen: Mapping[str, int]) -> dict[str, int]:
    parameters = read_parameters(kernel.problem_path, parameters=chosen)
    for name, value in parameters.items():
        if not float(value).is_integer():
            msg = f"{kernel.name}: parameter {name} is {value}; the corpus takes whole numbers"
            raise InputError(msg)
    return {name: int(value) for name, value in parameters.items()}


_MADE = "made.json"
_MAKING = "making-"
# Inputs that were asked for within so many seconds may be about to be read: they stay.
_IN_USE_S = 600.0


def keep_inputs(
    folder: Path, application: str, parameters: Mapping[str, int], code: bytes, make: InputMaker,
    *, most_bytes: int = 8 << 30,
) -> tuple[Path, dict[str, int]]:  # fmt: skip
    """Return where inputs are and the parameters that follow; make them if need be.

    Several processes may use the folder at once: it holds a folder per application, in it one for
    each set of parameters. Where all together take more bytes than they may, those go that were
    used longest ago: a collection of every kernel at some sizes generates tens of GB.
    """
    identity = json.dumps([application, dict(parameters)], sort_keys=True).encode() + code
    kept = folder / application / hashlib.sha256(identity).hexdigest()[:16]
    try:
        os.utime(kept)  # before anything else: what was just used is not dropped
    except FileNotFoundError:
        make_private_folder(kept.parent)
        making = Path(tempfile.mkdtemp(prefix=_MAKING, dir=kept.parent))
        try:
            made = make(dict(parameters), making)
            (making / _MADE).write_text(json.dumps(made), encoding="utf-8")
            try:
                making.rename(kept)
            except OSError:
                if not kept.is_dir():
                    raise
        finally:
            shutil.rmtree(making, ignore_errors=True)
        # Drop what was used longest ago until the rest is small enough, and unfinished folders.
        entries = []
        for one in folder.glob("*/*/"):
            with suppress(OSError):  # another process has just dropped it
                size = sum(file.stat().st_size for file in one.iterdir())
                entries.append((one.stat().st_mtime, one, size))
        total = 0
        for used_s, old, size in sorted(entries, reverse=True):
            total += size
            is_surplus = total > most_bytes or old.name.startswith(_MAKING)
            if is_surplus and time.time() - used_s > _IN_USE_S:
                shutil.rmtree(old, ignore_errors=True)
    return kept, json.loads((kept / _MADE).read_text(encoding="utf-8"))


def write_runnable_copy(kernel: CorpusKernel, folder: Path, parameters: Mapping[str, int]) -> Path:
    """Write a kernel's problem file, source and inputs into ``folder/<application>/<stem>``."""
    content = yaml.safe_load(kernel.problem_path.read_text(encoding="utf-8"))
    known = content.get("parameters") or {}
    chosen = {name: value for name, value in parameters.items() if name in known}
    target = folder / kernel.application / kernel.stem
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="making-", dir=target) as cache:
            usual = kernel.local_sizes[0]
            local_size = tuple(chosen.get(f"LOCAL{axis}", one) for axis, one in enumerate(usual))
            prepared = prepare_launch(
                kernel, chosen, local_size=local_size, cache_folder=Path(cache)
            )
            if prepared.inputs_folder is not None:
                for path in prepared.inputs_folder.glob("*.npy"):
                    path.replace(target / path.name)
        content["parameters"] = {**known, **prepared.replaced}
        if "source" in content:
            source = kernel.problem_path.parent / content["source"]
            shutil.copyfile(source, target / source.name)
        path = target / kernel.problem_path.name
        text = yaml.safe_dump(content, sort_keys=False, width=100)
        header = (
            f"# {kernel.name} of kernelcast's corpus, with its inputs made for these parameters."
        )
        path.write_text(f"{header}\n{text}", encoding="utf-8")
        return path
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from error
