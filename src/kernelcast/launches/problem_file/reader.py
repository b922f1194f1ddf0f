"""Reads a problem file into a `Problem` (format: docs/reference/problem-files.md)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelcast.launches.problem_file.arguments import read_argument
from kernelcast.launches.problem_file.content import (
    KEYS,
    REQUIRED,
    list_parameters,
    name_values,
    read_kernel,
    read_values,
)
from kernelcast.launches.problem_file.located import Located, Number, load
from kernelcast.launches.problem_file.parts import check_names, list_of, read_ndrange, read_text
from kernelcast.records.errors import ProblemFileError
from kernelcast.records.problem import Problem


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
    entries = root.mapping(KEYS, required=REQUIRED)
    return Problem(
        name=path.stem,
        kernel=read_kernel(root, entries, path),
        ndrange=read_ndrange(entries),
        arguments=tuple(read_argument(item, inputs_folder) for item in entries["args"].items()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemTemplate:
    """A problem file that was read once, for all values of its parameters."""

    path: Path
    """The file."""
    root: Located
    """Its content."""
    overrides: Mapping[str, Number]
    """Values that replace those of the file's `parameters`, lists included."""

    @property
    def swept(self) -> tuple[str, ...]:
        """Parameters that have a list of values, those replaced left out."""
        entries = list_parameters(self.root)
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
        entries = list_parameters(self.root)
        check_names(self.root, self.overrides, entries)
        for names in self._combine(list(entries.items()), {}):
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
        values = read_values(here)
        if name in self.overrides:
            values = [self.overrides[name]]
        for one in values:
            yield from self._combine(rest, {**known, name: one})

    def _restrictions(self, names: Mapping[str, Number]) -> list[Located]:
        section = self.root.mapping(KEYS).get("restrictions")
        return list_of(section and Located(section.node, self.path, "restrictions", names))


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
    root = _load(path)
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


def _load(path: Path) -> Located:
    text = read_text(path, "problem file")
    if path.suffix == ".cl":
        msg = f"{path}: is an OpenCL source; name it in a problem file, by `source: {path.name}`"
        raise ProblemFileError(msg)
    return load(path, text, Located)


def _load_with_parameters(path: Path, overrides: Mapping[str, Number]) -> Located:
    root = _load(path)
    return Located(root.node, path, "problem", name_values(root, overrides))
