"""Reads a problem file into a `Problem` (format: docs/reference/problem-files.md)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelcast.launches.problem_file.arguments import read_argument
from kernelcast.launches.problem_file.located import Located, Number, load
from kernelcast.launches.problem_file.parts import (
    check_names,
    items_of,
    list_of,
    pairs_of,
    read_ndrange,
    read_text,
)
from kernelcast.records.errors import ProblemFileError
from kernelcast.records.kernel import Kernel, includes_files
from kernelcast.records.problem import Problem

KEYS = (
    "source", "code", "kernel", "build_options", "global_size", "local_size", "global_offset",
    "parameters", "restrictions", "args",
)  # fmt: skip
REQUIRED = ("kernel", "global_size", "args")


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
    root: Located
    overrides: Mapping[str, Number]

    @property
    def swept(self) -> tuple[str, ...]:
        """Parameters that have a list of values, those replaced left out."""
        entries = list_parameters(self.root)
        return tuple(
            name for name, one in entries.items() if one.is_list and name not in self.overrides
        )

    def list_parameters(self) -> Iterator[dict[str, Number]]:
        """List all combinations of parameters that no restriction forbids, the last one fastest."""
        entries = list_parameters(self.root)
        check_names(self.root, self.overrides, entries)
        for names in self._combine(list(entries.items()), {}):
            if all(one.holds() for one in self._restrictions(names)):
                yield names

    def make(self, parameters: Mapping[str, Number]) -> Problem:
        root = replace(self.root, names=parameters)
        return _read_whole(root, self.path, self.path.parent)

    def _combine(
        self, entries: Sequence[tuple[str, Located]], known: Mapping[str, Number]
    ) -> Iterator[dict[str, Number]]:
        if not entries:
            yield dict(known)
            return
        (name, value), *rest = entries
        here = replace(value, names=known)
        values = read_values(here)
        if name in self.overrides:
            values = [self.overrides[name]]
        for one in values:
            yield from self._combine(rest, {**known, name: one})

    def _restrictions(self, names: Mapping[str, Number]) -> list[Located]:
        section = self.root.mapping(KEYS).get("restrictions")
        return list_of(section and replace(section, names=names))


def read_template(
    path: Path | str, *, parameters: Mapping[str, Number] | None = None
) -> ProblemTemplate:
    path = Path(path)
    root = _load(path)
    return ProblemTemplate(path=path, root=root, overrides=dict(parameters or {}))


def read_parameters(
    path: Path | str, *, parameters: Mapping[str, Number] | None = None
) -> dict[str, Number]:
    """Read the parameters of a problem file, derived ones computed."""
    return dict(_load_with_parameters(Path(path), parameters or {}).names)


def _load(path: Path) -> Located:
    text = read_text(path, "problem file")
    if path.suffix == ".cl":
        msg = f"{path}: is an OpenCL source; name it in a problem file, by `source: {path.name}`"
        raise ProblemFileError(msg)
    return load(path, text, Located)


def _load_with_parameters(path: Path, overrides: Mapping[str, Number]) -> Located:
    root = _load(path)
    return replace(root, names=name_values(root, overrides))


def name_values(root: Located, overrides: Mapping[str, Number]) -> dict[str, Number]:
    """Read the parameters; the first value of a list is the one in use (`collect` sweeps all)."""
    names: dict[str, Number] = {}
    entries = list_parameters(root)
    for name, value in entries.items():
        known = replace(value, names=names)
        names[name] = read_values(known, only_first=True)[0]
        if name in overrides:
            names[name] = overrides[name]
    check_names(root, overrides, entries)
    return names


def list_parameters(root: Located) -> dict[str, Located]:
    return pairs_of(root.mapping(KEYS).get("parameters"))


def read_values(value: Located, *, only_first: bool = False) -> list[Number]:
    values = value.items() if value.is_list else [value]
    if not values:
        value.fail("expected at least one number, found an empty list")
    return [one.number() for one in (values[:1] if only_first else values)]


def read_kernel(root: Located, entries: Mapping[str, Located], path: Path) -> Kernel:
    """Read the kernel; its source is text of the file, or of another one beside it."""
    if ("source" in entries) == ("code" in entries):
        root.fail("give either `source: FILE.cl` or `code: |` with the text, one of the two")
    build_options = tuple(item.text() for item in list_of(entries.get("build_options")))
    if "source" in entries:
        paths = [one.file(path.parent) for one in items_of(entries["source"])]
        if not paths:
            entries["source"].fail("expected a file, or a list of files, found nothing")
        source = "\n".join(read_text(one, "kernel source") for one in paths)
        source_name = " + ".join(one.name for one in paths)
        if includes_files(source, build_options):
            build_options = (
                *(_place_folder(one, path.parent) for one in build_options),
                *dict.fromkeys(f"-I{one.parent}" for one in paths),
            )
    else:
        source, source_name = entries["code"].raw_text(), f"{path.name} (code)"
    name = entries["kernel"].text()
    with entries["kernel"].pointing_here():
        return Kernel(
            name=name, source=source, source_name=source_name, build_options=build_options
        )


def _place_folder(option: str, folder: Path) -> str:
    """Have a folder of included files begin where the problem file lies, as all its paths."""
    name = option.removeprefix("-I")
    return f"-I{folder / name}" if name and option.startswith("-I") else option
