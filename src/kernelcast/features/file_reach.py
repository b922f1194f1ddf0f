"""Refuses sources and definitions that could make a compiler open a file.

What is checked are the tokens of the whole text, of branches that are not taken as well, and every
word that pasting could make of them. It holds for whatever macros a runtime defines.
"""

import functools
import re
from collections.abc import Sequence, Set
from typing import Final, NoReturn, TypeAlias

from kernelcast.records.errors import InputError

_ODD_DIRECTIVE: Final = re.compile(
    r"^# (?!(?:define|undef|(?:if|elif)(?:n?def)?|else|endif|error|warning"
    r"|pragma (?:OPENCL|unroll|nounroll|STDC|ivdep|clang loop)) )(\S+)"
    # Not even a macro's body may look like one that can name files.
    r"|(?<= )# (include(?:_next)?|import|embed|line|pragma|ident) ",
    re.MULTILINE,
)
_PASTED: Final = (
    "asm", "_asm", "_Pragma", "__FILE__", "__BASE_FILE__", "__FILE_NAME__", "__TIMESTAMP__",
    "__DATE__", "__TIME__", "__INCLUDE_LEVEL__",
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
_BALANCED: Final = re.compile(rf"{_NESTED}*+")
_NUMBER: Final = r"\.?[0-9](?:[eEpP][+-]|[\w.])*+"
_TOKEN: Final = re.compile(
    rf"""
      (?P<blank>[ \t\v\f]++|//[^\n]*+|/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*+/)
    | (?P<raw>(?:u8|[uUL])?R")
    | (?P<literal>"(?:[^"\\\n]|\\[^\n])*+"|(?:u8|[uUL]|(?<!\w))'(?:[^'\\\n]|\\[^\n])*+')
    | (?P<quote>(?:(?:{_NUMBER})?'|")(?P<rest>[^\n]*+))
    | (?P<other>/\*|%:|[^\n -~]|[\\@$`])
    | (?P<opening>(?<=\w)\()
    | [A-Za-z_]\w*+|{_NUMBER}|\#\#|.|\n
    """,
    re.ASCII | re.VERBOSE,
)
_WORD: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_Line: TypeAlias = tuple[str, ...]


def check_reach(source: str, definitions: Sequence[str] = ()) -> None:
    """Refuse a source that could reach files, together with definitions of ``-D``."""
    for one in definitions:
        # Nothing of it may go on in the first line of the source.
        if re.search(r"//|/[*]|[\r\n]|\\\s*\Z", one):
            _refuse(f"a comment, or the end of a line, in -D{one[:80]}", "leave it out")
    defined = "".join(f"#define {one.replace('=', ' ', 1)}\n" for one in definitions)
    lines = _split_lines(defined + source)
    # What stands between two directives is one piece.
    text = "".join(
        f"\n{' '.join(line)} \n" if line[0] == "#" else f"{' '.join(line)} " for line in lines
    )
    if found := _ODD_DIRECTIVE.search(text):
        _refuse(f"the directive #{found[1] or found[2]}")
    if re.search(r"^(?!# define )(?:# )?+.*#", text, re.MULTILINE):
        _refuse("# in the middle of a line that is no #define")
    _check_words(lines, text)


def _refuse(what: str, advice: str = "put everything into the source") -> NoReturn:
    raise InputError(f"code or build options: hold {what}; no file is reached from here: {advice}")


def _split_lines(source: str) -> list[_Line]:
    """Split a text into tokens by line; quoted texts are empty, comments are gone."""
    text = re.sub(r"\r\n?", "\n", source)
    if odd := re.search(r"[\x00-\x08\x0e-\x1f\x7f]|\?\?[=/'()!<>-]", text):
        _refuse(f"the control character or trigraph {odd[0]!r}", "give plain text")
    text = text.replace("\\\n", "")
    # Some compilers join the lines all the same; then the next one is quoted, or a comment.
    if re.search(r"^(?=.*?(?://|[\"'])).*\\[ \t\v\f]++$", text, re.MULTILINE):
        _refuse("blanks between a backslash and the end of a line that quotes", "remove them")
    lines: list[list[str]] = [[]]
    for match in _TOKEN.finditer(re.sub(r"\\[ \t\v\f]*+\n", "", text)):
        kind, token, line = match.lastgroup, match[0], lines[-1]
        if kind == "other":
            _refuse(f"the characters {token!a} outside comments and texts", "use the letters of C")
        if kind == "raw":
            _refuse("a raw text", 'write it as "..."')
        if kind == "quote":
            # No compiler takes such a line but where it skips it, as an apostrophe's of a sentence.
            if re.search(r"/\*|\*/|//|[\"\\]", match["rest"]):
                _refuse("a quotation mark without its second one", "close it, or write a comment")
            line += ['""', *re.findall(r"[A-Za-z_]\w*|##?", match["rest"], re.ASCII)]
        elif token == "\n":
            lines.append([])
        elif kind == "opening" and line[:-1] == ["#", "define"]:
            line.append("#(")  # begins the parameters
        elif kind != "blank":
            line.append('""' if kind == "literal" else token)
    # Nothing of a message is the program's.
    messages = (["#", "error"], ["#", "warning"])
    return [tuple(line[: 2 if line[:2] in messages else None]) for line in lines if line]


def _check_words(lines: Sequence[_Line], text: str) -> None:
    """Refuse attributes that may harm, words of compilers, and pieces that ## makes such of."""
    macros = [line for line in lines if line[:2] == ("#", "define") and len(line) > 2]
    defined = {line[2] for line in macros}
    # A macro with an odd parenthesis could end one attribute and begin another.
    bodies = [" ".join(_split_definition(line)[1]) for line in macros]
    is_odd = not all(map(_BALANCED.fullmatch, bodies))
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
    words, firsts, nexts = {"_"}, set[str](), set[str]()  # some targets define a macro as _
    split = [_split_definition(line) for line in lines]
    for parameters, body in split:
        words |= {one for one in body if _WORD.fullmatch(one)} - parameters
    for parameters, body in split:
        for left, sign, right in zip(("", *body), body, (*body[1:], ""), strict=False):
            if sign == "##":
                firsts |= words if left in parameters else {left}
                nexts |= words if right in parameters else {right}
    starts = {one[:end] for one in nexts for end in range(1, 20 + 1)}
    for word in (*_PASTED, *_PASTED_BEGINNINGS) if nexts else ():
        first, middle, last = (
            "|".join(re.escape(one) for one in pool if one and one in word) or "(?!)"
            for pool in (firsts, nexts, nexts if word in _PASTED else starts)
        )
        if pieces := re.fullmatch(f"({first})((?:{middle})*)({last})", word):
            told = ", ".join(f"`{one}`" for one in pieces.groups() if one)
            _refuse(f"## that could make the word {word} of {told}", "rename one of them")


def _split_definition(line: _Line) -> tuple[Set[str], _Line]:
    """Give what stands for any word, and what a line tells a compiler."""
    body = line[2:] if line[0] == "#" else line
    start = body.index(")") + 1 if body[1:2] == ("#(",) and ")" in body else 1
    parameters = {*body[2:start], ")", "__VA_ARGS__", "__VA_OPT__"} - {",", "."}
    return parameters, (*body[:1], *body[start:])
