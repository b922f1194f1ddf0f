"""Refuses sources and definitions that could make a compiler open a file.

What is checked are the tokens of the whole text, of branches that are not taken as well, and every
word that pasting could make of them. It holds for whatever macros a runtime defines.
"""

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeVar

from kernelcast.records.errors import InputError

DIRECTIVES: Final = frozenset({
    "define", "undef", "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif",
    "error", "warning", "pragma",
})  # fmt: skip
"""Directives that cannot name a file; of `pragma`, see `PRAGMAS`."""
OF_FILES: Final = frozenset({
    "include", "include_next", "import", "embed", "line", "pragma", "ident",
})  # fmt: skip
"""Directives that can; not even a macro's body may look like one."""
PRAGMAS: Final = frozenset({"OPENCL", "unroll", "nounroll", "STDC", "ivdep"})
"""First words of pragmas that speak of the code alone; so does ``clang loop``."""

_ASSEMBLER = frozenset({"asm", "_asm", "__asm", "__asm__"})
_OF_THE_MACHINE = frozenset({
    "_Pragma", "__FILE__", "__BASE_FILE__", "__FILE_NAME__", "__TIMESTAMP__", "__DATE__",
    "__TIME__", "__INCLUDE_LEVEL__",
})  # fmt: skip
# Code that runs when it is loaded, or that takes a function of the host's.
_LOADED = frozenset({"constructor", "destructor", "ifunc", "weakref"})
PASTED: Final = _ASSEMBLER | _OF_THE_MACHINE
"""Words that may not be pasted together either."""
PASTED_BEGINNINGS: Final = (
    "__has_include", "__has_embed", "__pragma", "__builtin_", "__attribute", "__declspec", "__asm",
)  # fmt: skip
"""Beginnings of words that may not be pasted together."""

_RESERVED = frozenset({
    "__kernel", "__global", "__local", "__constant", "__private", "__generic", "__read_only",
    "__write_only", "__read_write", "__attribute__", "__attribute", "__kernel_exec",
    "__inline", "__inline__", "__restrict", "__restrict__", "__const", "__volatile", "__volatile__",
    "__signed__", "__typeof__", "__alignof__", "__func__",
    "__has_builtin", "__has_feature", "__has_extension", "__has_attribute",
    "__builtin_astype", "__builtin_expect", "__builtin_assume", "__builtin_unreachable",
    "__builtin_shufflevector", "__builtin_convertvector",
    # Told apart by #ifdef only.
    "__clang__", "__clang_major__", "__clang_minor__", "__cplusplus", "__pocl__", "__x86_64__",
    "__i386__", "__aarch64__", "__arm__", "__riscv", "__amdgcn__", "__nvptx__", "__spir__",
    "__spirv__",
})  # fmt: skip
_RESERVED_BEGINNING = "__opencl_"

ATTRIBUTES: Final = frozenset({
    "address_space", "aligned", "always_inline", "cold", "const", "convergent", "deprecated",
    "endian", "ext_vector_type", "fallthrough", "flatten", "hot", "intel_reqd_sub_group_size",
    "max_global_work_dim", "max_work_group_size", "may_alias", "noinline", "nosvm",
    "num_compute_units", "num_simd_work_items", "opencl_unroll_hint", "overloadable", "packed",
    "pure", "qcom_reqd_sub_group_size", "amdgpu_flat_work_group_size", "amdgpu_waves_per_eu",
    "reqd_work_group_size", "uniform_work_group_size", "unused", "vec_type_hint", "vector_size",
    "work_group_size_hint", "xcl_pipeline_loop",
})  # fmt: skip
"""Attributes of types, functions and loops that name neither a symbol nor a section."""


def is_refused(word: str) -> bool:
    """Tell whether a word may not stand in a source."""
    if word in PASTED or word in _LOADED:
        return True
    if not (word.startswith("__") and word[2:3].islower()):
        return False
    return word not in _RESERVED and not word.startswith(_RESERVED_BEGINNING)


Line = tuple[str, ...]
"""Tokens of one line; backslashes before its end continue it, comments are gone."""
OPENS_PARAMETERS = "#("
"""Token of a parenthesis right after a macro's name: its parameters follow."""

_NEWLINE = re.compile(r"\r\n?")
_TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")
_SPLICE = re.compile(r"\\\n")
_BLANK_SPLICE = re.compile(r"\\[ \t\v\f]+\n")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t\v\f]++|//[^\n]*+|/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*+/)
    | (?P<newline>\n)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<number>\.?[0-9](?:[eEpP][+-]|[A-Za-z0-9_.])*+)
    | (?P<literal>"(?:[^"\\\n]|\\[^\n])*+"|'(?:[^'\\\n]|\\[^\n])*+')
    | (?P<quote>["'])
    | (?P<refused>/\*|%:)
    | (?P<sign>\#\#|[!#%&()*+,\-./:;<=>?\[\]^{|}~])
    | (?P<other>.)
    """,
    re.VERBOSE,
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|##?")
# Compilers differ in where a line ends that an odd quotation mark has begun to quote.
_AMBIGUOUS = re.compile(r"/\*|\*/|//|[\"\\]")
_RAW_TEXT = re.compile(r"(?:u8|[uUL])?R")
_PREFIX = re.compile(r"u8|[uUL]")
_REFUSED = {"/*": "a comment without an end", "%:": "the sign %: in place of #"}


class ReachError(Exception):
    """Is raised for what a text may not hold, with advice."""

    def __init__(self, what: str, advice: str = "put everything into the source") -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice


def split_lines(source: str) -> list[Line]:
    """Give the tokens of each line that has any."""
    lines: list[Line] = []
    current: list[str] = []
    for token, is_glued in _split(_splice(source)):
        if token != "\n":
            is_macro = is_glued and token == "(" and current[:-1] == ["#", "define"]
            current.append(OPENS_PARAMETERS if is_macro else token)
        elif current:
            lines.append(tuple(current))
            current = []
    return [*lines, tuple(current)] if current else lines


def _splice(source: str) -> str:
    """Join continued lines."""
    text = _NEWLINE.sub("\n", source)
    found = _CONTROL.search(text)
    if found is not None:
        what = f"the control character U+{ord(found[0]):04X}"
        raise ReachError(what, "give plain text")
    found = _TRIGRAPH.search(text)
    if found is not None:
        what = f"the trigraph {found[0]}"
        raise ReachError(what, "write the character itself, or set the question marks apart")
    text = _SPLICE.sub("", text)
    for found in _BLANK_SPLICE.finditer(text):
        # Some compilers join the lines all the same; then the next one is quoted, or a comment.
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if "//" in line or '"' in line or "'" in line:
            what = "blanks between a backslash and the end of a line that quotes or comments"
            raise ReachError(what, "remove them")
    return _BLANK_SPLICE.sub("", text)


def _split(text: str) -> Iterator[tuple[str, bool]]:
    """Give the tokens, and of each whether it stands right after a word."""
    place, before, ended = 0, "", -1
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:  # the pattern takes any character but a newline, which it names
            msg = f"the character {text[place]!r}"
            raise ReachError(msg)
        kind, token = match.lastgroup, match[0]
        is_glued = ended == place and (before[:1].isalnum() or before[:1] == "_")
        if kind == "quote" or (token[0] == "'" and is_glued and not _PREFIX.fullmatch(before)):
            place = yield from _take_odd_quote(text, place)
            continue
        _check(kind, token, before if is_glued else "")
        place = match.end()
        if kind != "blank":
            yield token, is_glued
            before, ended = token, place


def _check(kind: str | None, token: str, glued: str) -> None:
    """Refuse tokens that are none, or that only some compilers take for one."""
    if kind == "refused":
        raise ReachError(_REFUSED[token], "write it as usual")
    if kind == "other":
        what = f"the character {token!r} outside comments and texts"
        raise ReachError(what.encode("ascii", "backslashreplace").decode(), "use the letters of C")
    if kind == "literal" and token[0] == '"' and _RAW_TEXT.fullmatch(glued):
        msg = "a raw text"
        raise ReachError(msg, 'write it as "..."')


def _take_odd_quote(text: str, place: int) -> Generator[tuple[str, bool], None, int]:
    """Give the words of a line after a quotation mark that may quote them or may not.

    Such are lines that no compiler takes but where it skips them: apostrophes of a sentence.
    """
    end = text.find("\n", place)
    end = len(text) if end < 0 else end
    rest = text[place + 1 : end]
    if _AMBIGUOUS.search(rest):
        msg = "a quotation mark without its second one"
        raise ReachError(msg, "close it, or write a comment")
    yield from ((word, False) for word in _WORD.findall(rest))
    return end


_HASH, _PASTE = "#", "##"
_IS_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
# Some targets define a macro as it.
_KNOWN_PIECES = frozenset({"_"})


def find_pasted(lines: Sequence[Line]) -> tuple[str, tuple[str, ...]] | None:
    """Find a word of `PASTED` that can be made of words of a text."""
    firsts: set[str] = set()
    nexts: set[str] = set()
    words = _list_words(lines)
    for line in lines:
        for left, right in _list_operands(line):
            firsts |= words if left is None else {left}
            nexts |= words if right is None else {right}
    if not nexts:
        return None
    wanted = [(word, False) for word in sorted(PASTED, key=len)]
    wanted += [(word, True) for word in PASTED_BEGINNINGS]
    for word, is_beginning in wanted:
        pieces = _take_apart(word, firsts, nexts, is_beginning=is_beginning)
        if pieces is not None:
            return "".join(pieces), pieces
    return None


def _list_words(lines: Sequence[Line]) -> frozenset[str]:
    """Give the words of a text; a parameter is none, it stands for what it is given.

    Nor is a directive's own name: nothing hands it to a macro.
    """
    found = set(_KNOWN_PIECES)
    for line in lines:
        parameters, body = _split_definition(line)
        head = line[2:3] if line[0] == _HASH else line[:3]
        found.update(one for one in (*head, *body) if one not in parameters)
    return frozenset(one for one in found if _IS_WORD.fullmatch(one))


def _list_operands(line: Line) -> Iterator[tuple[str | None, str | None]]:
    """Give what stands left and right of each ``##``; None for what may be any word."""
    if _PASTE not in line:
        return
    parameters, body = _split_definition(line)
    for place, token in enumerate(body):
        if token == _PASTE:
            left = body[place - 1] if place else ""
            right = body[place + 1] if place + 1 < len(body) else ""
            yield _name_operand(left, parameters), _name_operand(right, parameters)


def _name_operand(token: str, parameters: frozenset[str]) -> str | None:
    """Give an operand as it stands; None for a parameter, and for the end of __VA_OPT__(...)."""
    return None if token in parameters or token in {")", "__VA_ARGS__", "__VA_OPT__"} else token


def _split_definition(line: Line) -> tuple[frozenset[str], Line]:
    """Give parameters and body of ``# define NAME(...) ...``."""
    body = line[3:]
    if body[:1] != (OPENS_PARAMETERS,) or ")" not in body:
        return frozenset(), body
    end = body.index(")")
    return frozenset(body[1:end]) - {",", "."}, body[end + 1 :]


def _take_apart(
    word: str, firsts: set[str], nexts: set[str], *, is_beginning: bool
) -> tuple[str, ...] | None:
    """Give at least two pieces that make a word, or a word that begins so."""
    known: dict[int, tuple[str, ...]] = {0: ()}
    for place in range(len(word)):
        pieces = known.get(place)
        if pieces is None:
            continue
        pool = nexts if pieces else firsts
        for end in range(place + 1, len(word) + 1):
            if word[place:end] in pool and not (place == 0 and end == len(word)):
                known.setdefault(end, (*pieces, word[place:end]))
        if is_beginning and pieces:
            longer = min((one for one in pool if one.startswith(word[place:])), default=None)
            if longer is not None:
                return (*pieces, longer)
    return known.get(len(word))


T = TypeVar("T")
_ATTRIBUTE = frozenset({"__attribute__", "__attribute"})
_HASH, _PASTE = "#", "##"


def check_reach(source: str, definitions: Sequence[str] = ()) -> None:
    """Refuse a source that could reach files, together with what is defined for it."""
    options = _try("build options", lambda: [line for one in definitions for line in _define(one)])
    code = _try("code", lambda: split_lines(source))
    defined = frozenset(line[2] for line in (*options, *code) if line[1:2] == ("define",))
    _try("build options", lambda: _check_lines(options, defined))
    _try("code", lambda: _check_lines(code, defined))
    _try("code", lambda: _check_pasting([*options, *code]))


def _try(subject: str, work: Callable[[], T]) -> T:
    """Do a piece of work; say of what it complains."""
    try:
        return work()
    except ReachError as error:
        msg = f"{subject}: holds {error.what}; no file is reached from here: {error.advice}"
        raise InputError(msg) from error


def _define(definition: str) -> list[Line]:
    """Give the line that a definition of the options stands for."""
    name, _, value = definition.partition("=")
    if "//" in value or "/*" in value:
        what = f"a comment in -D{definition[:80]}"
        raise ReachError(what, "leave it out")
    return split_lines(f"#define {name} {value}\n")


def _check_lines(lines: Sequence[Line], defined: frozenset[str]) -> None:
    for line in lines:
        _check_hashes(line)
    for part in _group(lines):
        _check_words(part, defined)


def _check_pasting(lines: Sequence[Line]) -> None:
    found = find_pasted(lines)
    if found is not None:
        word, pieces = found
        told = ", ".join(f"`{one}`" for one in pieces)
        what = f"## that could make the word {word} of {told}"
        raise ReachError(what, "rename one of them")


def _check_hashes(line: Line) -> None:
    """Refuse directives that are not known to be harmless, and # where none belongs."""
    body = line
    if line[0] == _HASH:
        name = line[1] if len(line) > 1 else ""
        if len(line) > 1 and (name not in DIRECTIVES or not _is_usual(name, line[2:])):
            msg = f"the directive #{name}"
            raise ReachError(msg)
        body = line[2:]
        if name == "define":
            for one, after in pairwise(body):
                if one == _HASH and after in OF_FILES:
                    msg = f"the directive #{after}"
                    raise ReachError(msg)
            return
        if name in {"error", "warning"}:
            return
    if _HASH in body or _PASTE in body:
        msg = "# in the middle of a line that is no #define"
        raise ReachError(msg)


def _is_usual(name: str, rest: Line) -> bool:
    if name != "pragma":
        return True
    return bool(rest) and (rest[0] in PRAGMAS or rest[:2] == ("clang", "loop"))


def _group(lines: Sequence[Line]) -> Iterator[list[str]]:
    """Give each directive, and the text between two of them as one piece.

    Nothing of a message (#error) is a token of the program.
    """
    text: list[str] = []
    for line in lines:
        if line[0] != _HASH:
            text += line
            continue
        yield text
        text = []
        if line[1:2] not in {("error",), ("warning",)}:
            yield list(line)
    yield text


def _check_words(tokens: list[str], defined: frozenset[str]) -> None:
    """Refuse words of compilers, and attributes that are not known to be harmless."""
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if is_refused(token):
            msg = f"the word {token}"
            raise ReachError(msg, "leave it out, or give it another name")
        if token == "[" and tokens[place + 1 : place + 2] == ["["]:
            msg = "[["
            raise ReachError(msg, "write attributes as __attribute__((...))")
        place = _skip_attributes(tokens, place, defined) if token in _ATTRIBUTE else place + 1


def _skip_attributes(tokens: list[str], place: int, defined: frozenset[str]) -> int:
    """Check the attributes at a place; give where they end."""
    if tokens[place + 1 : place + 3] != ["(", "("]:
        msg = "__attribute__ without ((...))"
        raise ReachError(msg, "write its attributes after it")
    place, depth = place + 3, 2
    while depth >= 2 and place < len(tokens):
        token = tokens[place]
        name = token.removeprefix("__").removesuffix("__")
        if depth == 2 and token not in {",", "(", ")"}:
            if name not in ATTRIBUTES or token in defined:
                msg = f"the attribute {token}"
                raise ReachError(msg, "leave it out")
        elif is_refused(token):
            msg = f"the word {token}"
            raise ReachError(msg, "leave it out, or give it another name")
        depth += {"(": 1, ")": -1}.get(token, 0)
        place += 1
    return place
