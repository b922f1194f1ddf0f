"""Refuses sources and definitions that could make a compiler open a file.

What is checked are the tokens of the whole text, of branches that are not taken as well, and every
word that pasting could make of them. It holds for whatever macros a runtime defines.
"""

import functools
import itertools
import re
from collections.abc import Sequence, Set
from typing import Final, NoReturn

from kernelcast.records.errors import InputError

_DIRECTIVE: Final = re.compile(
    r"# (?:define|undef|(?:if|elif)(?:n?def)?|else|endif|error|warning"
    r"|pragma (?:OPENCL|unroll|nounroll|STDC|ivdep|clang loop))(?: |\Z)"
)
_OF_FILES: Final = re.compile(
    r"(?<!\S)# (include(?:_next)?|import|embed|line|pragma|ident)(?: |\Z)"
)
"""Directives that can name files; not even a macro's body may look like one."""
_PASTED: Final = (
    "asm", "_asm", "__asm", "__asm__", "_Pragma", "__FILE__", "__BASE_FILE__", "__FILE_NAME__",
    "__TIMESTAMP__", "__DATE__", "__TIME__", "__INCLUDE_LEVEL__",
)  # fmt: skip
"""Words that may neither stand in a source nor be pasted together, and beginnings of such words."""
_PASTED_BEGINNINGS: Final = (
    "__has_include", "__has_embed", "__pragma", "__builtin_", "__attribute", "__declspec", "__asm",
)  # fmt: skip
# Compilers' words have two underscores and a small letter; a constructor runs when it is loaded.
_REFUSED: Final = re.compile(
    rf"(?:{'|'.join(_PASTED)}|constructor|destructor|ifunc|weakref|__[a-z].*)\Z"
)
_HARMLESS: Final = re.compile(
    r"__(?:opencl_.*|(?:(?:inline|restrict|volatile)(?:__)?|kernel|kernel_exec|global|local|private"
    r"|constant|generic|read_only|write_only|read_write|const|signed__|typeof__|alignof__|func__"
    r"|has_(?:builtin|feature|extension|attribute)|builtin_(?:astype|expect|assume|unreachable"
    r"|shufflevector|convertvector)|clang__|clang_(?:major|minor)__|cplusplus|pocl__|x86_64__"
    r"|i386__|aarch64__|arm__|riscv|amdgcn__|nvptx__|spir__|spirv__))\Z"
)
_ATTRIBUTES: Final = re.compile(
    r"(?:__)?(?:address_space|aligned|always_inline|cold|const|convergent|deprecated|endian"
    r"|ext_vector_type|fallthrough|flatten|hot|(?:intel|qcom)_reqd_sub_group_size"
    r"|max_global_work_dim|max_work_group_size|may_alias|noinline|nosvm|num_compute_units"
    r"|num_simd_work_items|opencl_unroll_hint|overloadable|packed|pure"
    r"|amdgpu_(?:flat_work_group_size|waves_per_eu)|(?:reqd|uniform)_work_group_size|unused"
    r"|vec_type_hint|vector_size|work_group_size_hint|xcl_pipeline_loop)(?:__)?\Z"
)
"""Of types, functions and loops, which name neither a symbol nor a section."""
_NESTED: Final = functools.reduce(
    lambda inner, _: rf"(?:[^()\n]|\({inner}*+\))", range(5), r"[^()\n]"
)
_ARGUMENTS: Final = re.compile(rf"\({_NESTED}*+\)")
_ATTRIBUTE: Final = re.compile(rf"(?<!\S)__attribute(?:__)? (?:\( \( ({_NESTED}*+)\) \))?")

_ODD_TEXT: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]|\?\?[=/'()!<>-]")
_SPLICE: Final = re.compile(r"\\[ \t\v\f]*+\n")
_TOKEN: Final = re.compile(
    r"""
      (?P<blank>[ \t\v\f]++|//[^\n]*+|/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*+/)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<number>\.?[0-9](?:[eEpP][+-]|[A-Za-z0-9_.])*+)
    | (?P<literal>"(?:[^"\\\n]|\\[^\n])*+"|'(?:[^'\\\n]|\\[^\n])*+')
    | (?P<quote>["'])
    | (?P<sign>\n|\#\#|(?!/\*|%:)[!#%&()*+,\-./:;<=>?\[\]^{|}~])
    | (?P<other>/\*|%:|.)
    """,
    re.VERBOSE,
)
_WORD: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PARAMETERS: Final = "#("
"""Token of a parenthesis right after a macro's name."""
_MESSAGES: Final = (["#", "error"], ["#", "warning"])
_Line = tuple[str, ...]


def check_reach(source: str, definitions: Sequence[str] = ()) -> None:
    """Refuse a source that could reach files, together with definitions of ``-D``."""
    try:
        for one in definitions:
            # Nothing of it may go on in the first line of the source.
            if re.search(r"//|/[*]|[\r\n]|\\\s*\Z", one):
                _refuse(f"a comment, or the end of a line, in -D{one[:80]}", "leave it out")
        defined = "".join(f"#define {one.replace('=', ' ', 1)}\n" for one in definitions)
        lines = _split_lines(defined + source)
        macros = [line for line in lines if line[:2] == ("#", "define") and len(line) > 2]
        # A macro with an odd parenthesis could end one attribute and begin another.
        is_odd = False
        for line in macros:
            signs = ((one == "(") - (one == ")") for one in _split_definition(line)[1])
            depths = [0, *itertools.accumulate(signs)]
            is_odd |= min(depths) < 0 or depths[-1] > 0
        for line in lines:
            is_directive = line[0] == "#"
            if is_directive and len(line) > 1 and not _DIRECTIVE.match(" ".join(line)):
                _refuse(f"the directive #{line[1]}")
            if line[:2] == ("#", "define"):
                if found := _OF_FILES.search(" ".join(line[2:])):
                    _refuse(f"the directive #{found[1]}")
            elif not {"#", "##"}.isdisjoint(line[2 * is_directive :]):
                _refuse("# in the middle of a line that is no #define")
        _check_words(lines, {line[2] for line in macros}, is_odd=is_odd)
        _check_pasting(lines)
    except ValueError as error:
        what, advice = error.args
        subject = "code or build options" if definitions else "code"
        msg = f"{subject}: holds {what}; no file is reached from here: {advice}"
        raise InputError(msg) from error


def _refuse(what: str, advice: str = "put everything into the source") -> NoReturn:
    raise ValueError(what, advice)


def _split_lines(source: str) -> list[_Line]:
    """Split a text into tokens by line; quoted texts are empty, comments are gone."""
    text = re.sub(r"\r\n?", "\n", source)
    if odd := _ODD_TEXT.search(text):
        _refuse(f"the control character or trigraph {odd[0]!r}", "give plain text")
    text = text.replace("\\\n", "")
    for line in text.split("\n"):
        # Some compilers join the lines all the same; then the next one is quoted, or a comment.
        end = line.rstrip(" \t\v\f")
        if end != line and end.endswith("\\") and re.search("//|[\"']", line):
            _refuse("blanks between a backslash and the end of a line that quotes", "remove them")
    text = _SPLICE.sub("", text)
    lines: list[list[str]] = [[]]
    place, before, ended = 0, "", -1
    while match := _TOKEN.match(text, place):
        kind, token = match.lastgroup, match[0]
        glued = before if ended == place and re.match(r"\w", before) else ""
        if kind == "other":
            _refuse(f"the characters {token!a} outside comments and texts", "use the letters of C")
        if kind == "literal" and token[0] == '"' and re.fullmatch(r"(?:u8|[uUL])?R", glued):
            _refuse("a raw text", 'write it as "..."')
        is_odd = token[0] == "'" and bool(glued) and not re.fullmatch("u8|[uUL]", glued)
        if kind == "quote" or is_odd:
            # No compiler takes such a line but where it skips it, as an apostrophe's of a sentence.
            rest = text[place + 1 :].partition("\n")[0]
            if re.search(r"/\*|\*/|//|[\"\\]", rest):
                _refuse("a quotation mark without its second one", "close it, or write a comment")
            lines[-1] += re.findall(r"[A-Za-z_]\w*|##?", rest, re.ASCII)
            place += 1 + len(rest)
            continue
        place = match.end()
        if token == "\n":
            lines.append([])
        elif kind != "blank":
            is_macro = token == "(" and glued and lines[-1][:-1] == ["#", "define"]
            lines[-1].append(_PARAMETERS if is_macro else '""' if kind == "literal" else token)
            before, ended = token, place
    # Nothing of a message is the program's.
    return [tuple(line[: 2 if line[:2] in _MESSAGES else None]) for line in lines if line]


def _check_words(lines: Sequence[_Line], defined: Set[str], *, is_odd: bool) -> None:
    """Refuse words of compilers, and attributes that are not known to be harmless."""
    # What stands between two directives is one piece.
    text = "".join(
        f"\n{' '.join(line)} \n" if line[0] == "#" else f"{' '.join(line)} " for line in lines
    )
    if "[ [" in text:
        _refuse("[[", "write attributes as __attribute__((...))")
    for match in _ATTRIBUTE.finditer(text):
        if match[1] is None:
            _refuse("__attribute__ without ((...))", "write its attributes after it")
        if is_odd and not defined.isdisjoint(_WORD.findall(match[1])):
            _refuse("a macro in an attribute, and one with an odd parenthesis", "write it out")
        for one in _ARGUMENTS.sub("", match[1]).replace(",", " ").split():
            if one in defined or not _ATTRIBUTES.match(one):
                _refuse(f"the attribute {one}", "leave it out")
    for word in _ATTRIBUTE.sub(lambda one: " ".join(_ARGUMENTS.findall(one[1])), text).split():
        if _REFUSED.match(word) and not _HARMLESS.match(word):
            _refuse(f"the word {word}", "leave it out, or give it another name")


def _check_pasting(lines: Sequence[_Line]) -> None:
    """Refuse texts with the pieces of a word that ## could make."""
    words, firsts, nexts = {"_"}, set[str](), set[str]()  # some targets define a macro as _
    split = [_split_definition(line) for line in lines]
    for parameters, body in split:
        words |= {one for one in body if _WORD.fullmatch(one)} - parameters
    for parameters, body in split:
        for left, sign, right in zip(("", *body), body, (*body[1:], ""), strict=False):
            if sign == "##":
                for pool, one in ((firsts, left), (nexts, right)):
                    pool |= words if one in parameters else {one}
    if not nexts:
        return
    starts = {one[:end] for one in nexts for end in range(1, 20 + 1)}
    for wanted, ends in ((_PASTED, nexts), (_PASTED_BEGINNINGS, starts)):
        for word in wanted:
            first, middle, last = (
                "|".join(re.escape(one) for one in pool if one and one in word) or "(?!)"
                for pool in (firsts, nexts, ends)
            )
            if pieces := re.fullmatch(f"({first})((?:{middle})*)({last})", word):
                told = ", ".join(f"`{one}`" for one in pieces.groups() if one)
                _refuse(f"## that could make the word {word} of {told}", "rename one of them")


def _split_definition(line: _Line) -> tuple[Set[str], _Line]:
    """Give what stands for any word, and what a line tells a compiler."""
    open_ended = {")", "__VA_ARGS__", "__VA_OPT__"}
    if line[0] != "#":
        return set(), line
    if line[3:4] != (_PARAMETERS,) or ")" not in line:
        return open_ended, line[2:]
    end = line.index(")")
    return {*line[4:end], *open_ended} - {",", "."}, (line[2], *line[end + 1 :])
