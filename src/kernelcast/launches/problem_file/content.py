"""What a problem says, whether it came as a file or as JSON."""

from collections.abc import Mapping
from pathlib import Path

from kernelcast.launches.problem_file.located import Located, Number
from kernelcast.launches.problem_file.parts import (
    check_names,
    items_of,
    list_of,
    pairs_of,
    read_text,
)
from kernelcast.records.kernel import Kernel, includes_files

KEYS = (
    "source", "code", "kernel", "build_options", "global_size", "local_size", "global_offset",
    "parameters", "restrictions", "args",
)  # fmt: skip
REQUIRED = ("kernel", "global_size", "args")


def name_values(root: Located, overrides: Mapping[str, Number]) -> dict[str, Number]:
    """Read the parameters; the first value of a list is the one in use (`collect` sweeps all).

    Parameters
    ----------
    overrides : mapping of str to number
        Values that replace those of the problem.

    Raises
    ------
    InputError
        If one is given that the problem does not have, or one is no number.
    """
    names: dict[str, Number] = {}
    entries = list_parameters(root)
    for name, value in entries.items():
        known = Located(value.node, value.path, value.key, names)
        names[name] = read_values(known, only_first=True)[0]
        if name in overrides:
            names[name] = overrides[name]
    check_names(root, overrides, entries)
    return names


def list_parameters(root: Located) -> dict[str, Located]:
    """Give the parameters as they stand."""
    return pairs_of(root.mapping(KEYS).get("parameters"))


def read_values(value: Located, *, only_first: bool = False) -> list[Number]:
    """Read the values of a parameter: one, or a list.

    Raises
    ------
    InputError
        If one is no number, or the list is empty.
    """
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
