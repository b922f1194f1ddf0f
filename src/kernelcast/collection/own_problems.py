"""Finds problem files of one's own in a folder, and which of their parameters makes them larger."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelcast.launches.problem_file import read_parameters, read_problem
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.training_data.applications import (
    DESCRIPTION,
    CorpusKernel,
    SizeRange,
    read_application,
)

_ENDINGS = frozenset({".yaml", ".yml"})
# How far sizes are searched beyond the file's own; what no device can hold ends it before.
_FARTHEST = 4096


def find_problems(
    folder: Path, sizes: Mapping[str, Sequence[int]] | None = None
) -> tuple[tuple[CorpusKernel, ...], dict[str, str]]:
    """Find the kernels to collect in a folder and the folders in it."""
    if not folder.is_dir():
        raise InputError(f"{folder}: is no folder; name one that holds problem files")
    found: dict[Path, CorpusKernel] = {}
    for path in sorted(folder.rglob(DESCRIPTION)):
        found |= {one.problem_path: one for one in read_application(path.parent).kernels}
    left_out, named = {}, set[str]()
    for path in sorted(folder.rglob("*")):
        if path.suffix in _ENDINGS and path.name != DESCRIPTION and path not in found:
            try:
                named |= read_parameters(path).keys()
                found[path] = _describe(path, folder, sizes or {})
            except KernelcastError as error:
                left_out[str(path)] = str(error)
    if unknown := sorted({*(sizes or {})} - named):
        known = ", ".join(sorted(named)) or "none"
        raise InputError(f"--size {unknown[0]}: no problem file of {folder} has it, but {known}")
    if not found:
        reasons = "".join(f"\n  {one}" for one in left_out.values())
        raise InputError(f"{folder}: no problem files that can be collected are here{reasons}")
    return tuple(sorted(found.values(), key=lambda one: one.name)), left_out


def _describe(path: Path, folder: Path, sizes: Mapping[str, Sequence[int]]) -> CorpusKernel:
    parameters = read_parameters(path)
    problem = read_problem(path)
    if problem.ndrange.local_size is None:
        msg = f"{path}: says no local size; rows are of work-groups, so give `local_size`"
        raise InputError(msg)
    own = [name for name in sizes if name in parameters]
    given = tuple(sorted({int(one) for name in own for one in sizes[name]}))
    if len(own) > 1:
        raise InputError(f"{path}: has {' and '.join(own)}; name one of them by --size")
    size = (
        SizeRange(parameter=own[0], least=1, most=max(given) + 1)
        if given
        else guess_size(path, own[0] if own else None)
    )
    return CorpusKernel(
        application="" if path.parent == folder else path.parent.name,
        problem_path=path,
        size=size,
        sizes=given,
        local_sizes=(problem.ndrange.local_size,),
        uses_fp64="double" in problem.kernel.source,
    )


def guess_size(path: Path, name: str | None) -> SizeRange:
    """Guess by trying which parameter makes a launch larger, in which steps, and how fast."""
    ndrange = read_problem(path).ndrange
    groups = ndrange.work_group_count
    whole = {
        key: int(value)
        for key, value in read_parameters(path).items()
        if float(value).is_integer() and value >= 1 and name in {None, key}
    }
    for key, value in whole.items():
        try:
            grown = read_problem(path, parameters={key: 2 * value}).ndrange.work_group_count
        except KernelcastError:  # the launch cannot be then
            continue
        if grown <= groups:
            continue
        # Kernels often assume sizes that are multiples of the work-group's.
        step = math.gcd(value, ndrange.work_group_size)
        while step < 1 << 20 and not _has_whole_groups(path, key, value + step):
            step *= 2
        return SizeRange(
            parameter=key,
            least=max(value // _FARTHEST // step, 1) * step,
            most=max(value // step, 2) * _FARTHEST * step,
            multiple_of=step,
            exponent=max(math.log2(grown / groups), 1.0),
        )
    raise InputError(
        f"{path}: no whole number among its parameters adds work-groups when it grows"
        f"{'' if name is None else f' ({name} does not)'}; make the global size depend on one, "
        "such as `parameters: {N: 65536}`"
    )


def _has_whole_groups(path: Path, name: str, value: int) -> bool:
    """Tell whether all work-groups are of one size at another value, as most kernels assume."""
    try:
        ndrange = read_problem(path, parameters={name: value}).ndrange
    except KernelcastError:
        return False
    local = ndrange.local_size or ndrange.global_size
    return all(whole % part == 0 for whole, part in zip(ndrange.global_size, local, strict=True))
