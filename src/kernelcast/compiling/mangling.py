"""Names of built-in functions as compilers write them, with the types of their parameters."""

import re
from typing import Final

_MANGLED: Final = re.compile(r"_Z(\d+)(.*)$")
_LETTERS: Final = {
    "v": "void", "b": "bool", "c": "char", "a": "char", "h": "uchar", "s": "short", "t": "ushort",
    "i": "int", "j": "uint", "l": "long", "m": "ulong", "x": "long", "y": "ulong", "f": "float",
    "d": "double",
}  # fmt: skip
_SPACES: Final = ("__private", "__global", "__constant", "__local", "__generic")
_QUALIFIERS: Final = re.compile(r"\b(?:__\w+|const|volatile|restrict) ")
# What clang makes of them before it looks for a library.
_LOWERED: Final = {
    "__translate_sampler_initializer": "sampler_t", "__printf_alloc": "printf",
    "__read_pipe": "read_pipe", "__write_pipe": "write_pipe",
}  # fmt: skip


def split_name(name: str) -> tuple[str, str]:
    """Split into the name in the source and how the types of parameters are written."""
    match = _MANGLED.match(name)
    if match is None:
        return name, ""
    length = int(match[1])
    return match[2][:length], match[2][length:]


def demangle(name: str) -> str:
    """Spell a built-in function as OpenCL C does, with its parameters where they are numbers."""
    base, mangled = split_name(name)
    if base == name:
        return next((spelt for start, spelt in _LOWERED.items() if name.startswith(start)), name)
    try:
        types = [_QUALIFIERS.sub("", one) for one in read_types(mangled)]
    except ValueError:
        return base
    return base if {"", "void"}.intersection(types) else f"{base}({', '.join(types)})"


def read_types(mangled: str) -> list[str]:
    """Read the types of a builtin's parameters (Itanium C++ ABI); empty for images and such."""
    place = 0
    seen: list[str] = []

    def read() -> str:
        nonlocal place
        letter = mangled[place]
        if letter == "S":
            end = mangled.index("_", place)
            number = mangled[place + 1 : end]
            place = end + 1
            return seen[int(number, 36) + 1 if number else 0]
        qualifiers: list[str] = []
        while mangled[place] in "UVKr":
            letter = mangled[place]
            place += 1
            if letter != "U":
                qualifiers.append({"V": "volatile", "K": "const", "r": "restrict"}[letter])
                continue
            match = re.compile(r"\d+").match(mangled, place)
            length = int(match[0]) if match else 0
            place = (match.end() if match else place) + length
            word = mangled[place - length : place]
            qualifiers.append(_SPACES[int(word[2:])] if word.startswith("AS") else word)
        if qualifiers:
            inner = read()
            if "_Atomic" in qualifiers:
                inner = f"atomic_{inner}"
            spaces = [one for one in qualifiers if one.startswith("__")]
            others = [one for one in qualifiers if one in ("volatile", "const")]
            found = " ".join((*others, *spaces, inner))
            seen.append(found)
            return found
        place += 1
        if letter == "P":
            inner = read()
            found = f"{inner} *"
        elif letter == "D" and mangled[place] == "v":
            end = mangled.index("_", place)
            lanes = mangled[place + 1 : end]
            place = end + 1
            found = f"{read()}{lanes}"
        elif letter == "D":
            place += 1
            return {"h": "half"}[mangled[place - 1]]
        elif letter.isdigit():
            match = re.compile(r"\d+").match(mangled, place - 1)
            start = match.end() if match else place
            place = start + int(match[0] if match else 0)
            word = mangled[start:place]
            found = "event_t" if word == "ocl_event" else "" if word.startswith("ocl_") else word
        else:
            return _LETTERS[letter]
        seen.append(found)
        return found

    types = []
    try:
        while place < len(mangled):
            types.append(read())
    except (KeyError, IndexError) as error:
        raise ValueError(f"no types of parameters: {mangled}") from error
    return types
