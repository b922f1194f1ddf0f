"""Reads a problem file into a `Problem` (format: docs/reference/problem-files.md)."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kernelcast.predictor.problem_file.arguments import read_argument
from kernelcast.predictor.problem_file.located import Located, Number, load
from kernelcast.records.errors import InputError, NDRangeError, ProblemFileError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange
from kernelcast.records.problem import Problem

KEYS = (
    "source", "code", "kernel", "build_options", "global_size", "local_size", "global_offset",
    "parameters", "args",
)  # fmt: skip


def read_problem(
    path: Path | str,
    *,
    parameters: Mapping[str, Number] | None = None,
    inputs_folder: Path | None = None,
) -> Problem:
    """Read one problem file.

    Parameters
    ----------
    path : Path or str
        The YAML file; files it names are relative to it.
    parameters : mapping of str to number, optional
        Values that replace those of the file's `parameters`.
    inputs_folder : Path, optional
        What .npy files are relative to, where they do not lie beside the problem file.

    Returns
    -------
    Problem

    Raises
    ------
    ProblemFileError
        If the file cannot be read, is no YAML, or says something that cannot be used; the
        message begins with file and line.
    """
    path = Path(path)
    root = _load_with_parameters(path, parameters or {})
    entries = root.mapping(KEYS, required=("kernel", "global_size", "args"))
    return Problem(
        name=path.stem,
        kernel=_read_kernel(root, entries, path),
        ndrange=_read_ndrange(entries),
        arguments=tuple(
            read_argument(item, inputs_folder or path.parent) for item in entries["args"].items()
        ),
    )


def read_parameters(
    path: Path | str, *, parameters: Mapping[str, Number] | None = None
) -> dict[str, Number]:
    """Read the parameters of a problem file, derived ones computed.

    Parameters
    ----------
    path : Path or str
        The YAML file.
    parameters : mapping of str to number, optional
        Values that replace those of the file.

    Raises
    ------
    ProblemFileError
        If the file cannot be read or its parameters are malformed.
    """
    return dict(_load_with_parameters(Path(path), parameters or {}).names)


def _load_with_parameters(path: Path, overrides: Mapping[str, Number]) -> Located:
    root = load(path, _read_text(path, "problem file"), Located)
    return Located(root.node, path, "problem", _read_parameters(root, overrides))


def _read_text(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        msg = f"{path}: the {what} cannot be read: {error.strerror or error}"
        raise ProblemFileError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{path}: the {what} is no UTF-8 text ({error.reason} at byte {error.start})"
        raise ProblemFileError(msg) from error


def _read_parameters(root: Located, overrides: Mapping[str, Number]) -> dict[str, Number]:
    """Read the parameters; the first value of a list is the one in use (`collect` sweeps all)."""
    section = root.mapping(KEYS).get("parameters")
    entries = {} if section is None or section.is_null else section.pairs()
    names: dict[str, Number] = {}
    for name, value in entries.items():
        known = Located(value.node, value.path, value.key, names)
        values = known.items() if known.is_list else [known]
        if not values:
            known.fail("expected at least one number, found an empty list")
        names[name] = values[0].number()
        if name in overrides:
            names[name] = overrides[name]
    unknown = sorted(set(overrides) - set(entries))
    if unknown:
        known_names = ", ".join(entries) or "none"
        root.fail(f"no parameter is called {', '.join(unknown)}; the parameters are: {known_names}")
    return names


def _read_kernel(root: Located, entries: Mapping[str, Located], path: Path) -> Kernel:
    if ("source" in entries) == ("code" in entries):
        root.fail("give either `source: FILE.cl` or `code: |` with the text, one of the two")
    if "source" in entries:
        source_path = entries["source"].file(path.parent)
        source, source_name = _read_text(source_path, "kernel source"), source_path.name
    else:
        source, source_name = entries["code"].raw_text(), f"{path.name} (code)"
    section = entries.get("build_options")
    options = [] if section is None or section.is_null else section.items()
    build_options = tuple(item.text() for item in options)
    name = entries["kernel"].text()
    try:
        return Kernel(
            name=name, source=source, source_name=source_name, build_options=build_options
        )
    except InputError as error:
        entries["kernel"].fail(str(error))


def _read_ndrange(entries: Mapping[str, Located]) -> NDRange:
    global_size = _read_sizes(entries["global_size"], minimum=1)
    if global_size is None:
        entries["global_size"].fail("expected one to three numbers, found nothing")
    ndrange = NDRange(global_size=global_size)
    # One after the other, so that a complaint is about the key that is wrong.
    for key, minimum in (("local_size", 1), ("global_offset", 0)):
        sizes = _read_sizes(entries.get(key), minimum=minimum)
        if sizes is None:
            continue
        try:
            ndrange = replace(ndrange, **{key: sizes})
        except NDRangeError as error:
            entries[key].fail(str(error))
    return ndrange


def _read_sizes(located: Located | None, *, minimum: int) -> tuple[int, ...] | None:
    if located is None or located.is_null:
        return None
    items = located.items() if located.is_list else [located]
    if not 1 <= len(items) <= MAX_DIMENSIONS:
        located.fail(f"expected one to three numbers, found {len(items)}")
    return tuple(item.integer(minimum=minimum) for item in items)
