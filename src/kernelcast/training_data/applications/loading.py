"""Reads the corpus that is shipped, and imports what an application computes with."""

import fnmatch
import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TypeAlias, cast

from kernelcast.records.errors import InputError
from kernelcast.training_data import corpus
from kernelcast.training_data.applications.description import DESCRIPTION, read_application
from kernelcast.training_data.applications.records import Application, CorpusKernel
from kernelcast.training_data.reference import Reference

InputMaker: TypeAlias = Callable[[Mapping[str, int], Path], dict[str, int]]
"""Writes .npy files into a folder; gives the parameters that depend on their content."""


def find_applications() -> tuple[Application, ...]:
    """Read every application of the corpus, in the order of their folders' names.

    Examples
    --------
    >>> [one.suite.value for one in find_applications() if one.name == "Nbody"]
    ['NVIDIA']
    """
    folder = Path(corpus.__path__[0])
    return tuple(read_application(path.parent) for path in sorted(folder.glob(f"*/{DESCRIPTION}")))


def find_kernels(*patterns: str) -> tuple[CorpusKernel, ...]:
    """Give the kernels whose name, ``application/stem``, matches a pattern, each once.

    Parameters
    ----------
    *patterns : str
        As in shells (``nbody/*``); without a slash one names an application, a kernel's stem or a
        kernel of Table 2. Without any all kernels are meant.

    Examples
    --------
    >>> [one.name for one in find_kernels("blackscholes")]
    ['blackscholes/blackscholes']
    """
    kernels = tuple(kernel for one in find_applications() for kernel in one.kernels)
    return choose_kernels(kernels, patterns, "the corpus", "; `kernelcast corpus ls` lists them")


def choose_kernels(
    kernels: Sequence[CorpusKernel], patterns: Sequence[str], where: str, advice: str = ""
) -> tuple[CorpusKernel, ...]:
    """Choose the kernels that match a pattern, as `find_kernels` does; none takes all."""
    found: dict[str, CorpusKernel] = {}
    for pattern in patterns or ("*",):
        matching = {one.name: one for one in kernels if _matches(one, pattern)}
        if not matching:
            msg = f"no kernel of {where} matches {pattern!r}{advice}"
            raise InputError(msg)
        found |= matching
    return tuple(found.values())


def load_reference(kernel: CorpusKernel) -> Reference:
    """Import what a kernel must compute."""
    references = _import(kernel.application, "reference").REFERENCES
    if kernel.stem not in references:
        msg = f"{kernel.name}: reference.py holds {sorted(references)}; add {kernel.stem!r}"
        raise InputError(msg)
    return cast("Reference", references[kernel.stem])


def load_input_maker(kernel: CorpusKernel) -> InputMaker | None:
    """Import what makes the .npy files of a kernel's application; None if it has none."""
    folder = kernel.problem_path.parent
    if folder.parent != Path(corpus.__path__[0]) or not (folder / "inputs.py").is_file():
        return None
    return cast("InputMaker", _import(kernel.application, "inputs").make)


def _import(application: str, module: str) -> ModuleType:
    return importlib.import_module(f"{corpus.__name__}.{application}.{module}")


def _matches(kernel: CorpusKernel, pattern: str) -> bool:
    names = [kernel.name]
    if "/" not in pattern:
        names += [kernel.application, kernel.stem, kernel.table_2 or ""]
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)
