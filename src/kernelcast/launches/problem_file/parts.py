"""Parts that problem files share with files of other kinds: texts, lists, index spaces."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kernelcast.launches.problem_file.located import Entry, Located, Number
from kernelcast.records.errors import InputError, ProblemFileError
from kernelcast.records.ndrange import NDRange


def read_text(path: Path, what: str, error: type[InputError] = ProblemFileError) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as found:
        msg = f"{path}: the {what} cannot be read: {found.strerror or found}"
        raise error(msg) from found
    except UnicodeDecodeError as found:
        msg = f"{path}: the {what} is no UTF-8 text ({found.reason} at byte {found.start})"
        raise error(msg) from found


def pairs_of(entry: Entry | None) -> dict[str, Entry]:
    """Read a mapping that may be left out."""
    return {} if entry is None or entry.is_null else entry.pairs()


def list_of(entry: Entry | None) -> list[Entry]:
    return [] if entry is None or entry.is_null else entry.items()


def items_of(entry: Entry | None) -> list[Entry]:
    """Read a list, or one value in its place, that may be left out."""
    if entry is None or entry.is_null:
        return []
    return entry.items() if entry.is_list else [entry]


def read_numbers(
    root: Entry,
    entries: Mapping[str, Entry],
    given: Mapping[str, Number],
    known: Mapping[str, Number] | None = None,
) -> dict[str, Number]:
    """Read parameters, each of which may be computed from those before it."""
    check_names(root, given, entries)
    names = dict(known or {})
    for name, value in entries.items():
        names[name] = given.get(name, replace(value, names=names).number())
    return names


def check_names(root: Located, given: Mapping[str, object], known: Mapping[str, object]) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        names = ", ".join(known) or "none"
        root.fail(f"no parameter is called {', '.join(unknown)}; the parameters are: {names}")


def read_ndrange(entries: Mapping[str, Located]) -> NDRange:
    ndrange = NDRange(global_size=entries["global_size"].sizes(minimum=1))
    # One after the other, so that a complaint is about the key that is wrong.
    for key, minimum in (("local_size", 1), ("global_offset", 0)):
        entry = entries.get(key)
        if entry is not None and not entry.is_null:
            with entry.pointing_here():
                ndrange = replace(ndrange, **{key: entry.sizes(minimum=minimum)})
    return ndrange
