"""Reads a problem file into a `Problem` (format: docs/reference/problem-files.md)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelcast.predictor.problem_file.arguments import read_argument
from kernelcast.predictor.problem_file.located import Located, Number, load
from kernelcast.records.errors import InputError, NDRangeError, ProblemFileError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange
from kernelcast.records.problem import Problem

KEYS = (
    "source", "code", "kernel", "build_options", "global_size", "local_size", "global_offset",
    "parameters", "restrictions", "args",
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
    return _read_whole(root, path, inputs_folder or path.parent)


def _read_whole(root: Located, path: Path, inputs_folder: Path) -> Problem:
    entries = root.mapping(KEYS, required=("kernel", "global_size", "args"))
    return Problem(
        name=path.stem,
        kernel=_read_kernel(root, entries, path),
        ndrange=_read_ndrange(entries),
        arguments=tuple(read_argument(item, inputs_folder) for item in entries["args"].items()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemTemplate:
    """A problem file that was read once, for all values of its parameters.

    Parameters
    ----------
    path : Path
        The file.
    root : Located
        Its content.
    overrides : mapping of str to number
        Values that replace those of the file's `parameters`, lists included.
    """

    path: Path
    root: Located
    overrides: Mapping[str, Number]

    @property
    def swept(self) -> tuple[str, ...]:
        """Parameters that have a list of values, those replaced left out."""
        entries = _list_parameters(self.root)
        return tuple(
            name for name, one in entries.items() if one.is_list and name not in self.overrides
        )

    def list_parameters(self) -> Iterator[dict[str, Number]]:
        """Give the values of all parameters for each combination of listed values.

        The last list changes fastest. Combinations that a restriction forbids are left out.

        Raises
        ------
        ProblemFileError
            If a value or a restriction cannot be read.
        """
        _check_overrides(self.root, self.overrides)
        entries = list(_list_parameters(self.root).items())
        for names in self._combine(entries, {}):
            if all(one.holds() for one in self._restrictions(names)):
                yield names

    def make(self, parameters: Mapping[str, Number]) -> Problem:
        """Give the problem with these values of all parameters.

        Raises
        ------
        ProblemFileError
            If the file says something that cannot be used with them.
        """
        root = Located(self.root.node, self.path, "problem", parameters)
        return _read_whole(root, self.path, self.path.parent)

    def _combine(
        self, entries: Sequence[tuple[str, Located]], known: Mapping[str, Number]
    ) -> Iterator[dict[str, Number]]:
        if not entries:
            yield dict(known)
            return
        (name, value), *rest = entries
        here = Located(value.node, value.path, value.key, known)
        values = _read_values(here)
        if name in self.overrides:
            values = [self.overrides[name]]
        for one in values:
            yield from self._combine(rest, {**known, name: one})

    def _restrictions(self, names: Mapping[str, Number]) -> list[Located]:
        section = self.root.mapping(KEYS).get("restrictions")
        if section is None or section.is_null:
            return []
        return Located(section.node, self.path, "restrictions", names).items()


def read_template(
    path: Path | str, *, parameters: Mapping[str, Number] | None = None
) -> ProblemTemplate:
    """Read a problem file for all values of its parameters.

    Parameters
    ----------
    path : Path or str
        The YAML file.
    parameters : mapping of str to number, optional
        Values that replace those of the file's `parameters`.

    Raises
    ------
    ProblemFileError
        If the file cannot be read or is no YAML.
    """
    path = Path(path)
    root = load(path, _read_text(path, "problem file"), Located)
    return ProblemTemplate(path=path, root=root, overrides=dict(parameters or {}))


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
    names: dict[str, Number] = {}
    for name, value in _list_parameters(root).items():
        known = Located(value.node, value.path, value.key, names)
        names[name] = _read_values(known, only_first=True)[0]
        if name in overrides:
            names[name] = overrides[name]
    _check_overrides(root, overrides)
    return names


def _list_parameters(root: Located) -> dict[str, Located]:
    section = root.mapping(KEYS).get("parameters")
    return {} if section is None or section.is_null else section.pairs()


def _read_values(value: Located, *, only_first: bool = False) -> list[Number]:
    values = value.items() if value.is_list else [value]
    if not values:
        value.fail("expected at least one number, found an empty list")
    return [one.number() for one in (values[:1] if only_first else values)]


def _check_overrides(root: Located, overrides: Mapping[str, Number]) -> None:
    known = _list_parameters(root)
    unknown = sorted(set(overrides) - set(known))
    if unknown:
        known_names = ", ".join(known) or "none"
        root.fail(f"no parameter is called {', '.join(unknown)}; the parameters are: {known_names}")


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
