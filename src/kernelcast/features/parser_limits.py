"""Tells sources apart that could overflow libclang's stack or expand without end.

Such a source ends the process, not the call. Few sources of people's are as long in one statement
or as deep as what is looked for here; those that are get parsed by a child process first.
"""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache

from kernelcast.records.errors import InputError

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_OPERATOR = re.compile(r"[-+*/%&|^!~?=<>.:\[(,]|sizeof")
_NESTING = re.compile(r"\b(?:else|if|for|while|do|case|default|switch)\b|\w\s*:(?!:)")
_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\(([^)\n]*)\))?(.*)$", re.MULTILINE)
_INCLUSION = re.compile(r"^[ \t]*#[ \t]*include[^\n]*$", re.MULTILINE)
_WORD = re.compile(r"\w+")
_LONG_STATEMENT = 2000
"""Characters; no shorter statement can nest deeply enough."""
# libclang 18.1 overflows its stack of 8 MiB somewhat below 2,000 casts in a row.
_MOST_OPERATORS = 700
_MOST_NESTING = 1000
_MOST_BRACES = 60
_MOST_TOKENS = 200_000
_LIMIT_S = 4.0


def check_source(source: str, options: Sequence[str]) -> None:
    """Refuse a source that libclang cannot take.

    Raises
    ------
    InputError
        If a child process that parses it crashes, or needs longer than 4 seconds.
    """
    reason = describe_excess(source, options)
    if reason and not _survives(source, tuple(options)):
        msg = (
            f"the source has {reason}, and the parser crashes or does not come to an end;"
            " nest less deeply, or split what macros expand to"
        )
        raise InputError(msg)


def describe_excess(source: str, options: Sequence[str] = ()) -> str:
    """Say what about a source may be too much for libclang; empty if nothing is.

    Examples
    --------
    >>> describe_excess("kernel void k() {}")
    ''
    >>> describe_excess("int x = " + "(int)" * 2000 + "1;")
    'a statement of 2001 operators'
    """
    plain = _COMMENT.sub(" ", source)
    for statement in re.split(r"[;{}]", plain) if len(plain) > _LONG_STATEMENT else ():
        if len(statement) > _LONG_STATEMENT:
            operators = len(_OPERATOR.findall(statement))
            if operators > _MOST_OPERATORS and not _is_table(statement):
                return f"a statement of {operators} operators"
    nesting = len(_NESTING.findall(plain))
    if nesting > _MOST_NESTING:
        return f"{nesting} statements that may nest"
    depth = _depth_of_braces(plain)
    if depth > _MOST_BRACES:
        return f"{depth} nested braces"
    inclusions = _INCLUSION.findall(plain)
    if len(set(inclusions)) < len(inclusions):
        return "a file included twice"
    tokens = _expanded_tokens(plain, options)
    return f"macros that may expand to {tokens} tokens" if tokens > _MOST_TOKENS else ""


def _is_table(statement: str) -> bool:
    """Tell a list of numbers, which nests nowhere however long it is."""
    return re.fullmatch(r"[\s\w.,+-]*", statement) is not None and not re.search(
        r"[+-]\s*[+-]|\w\s*[+-](?<![eE].)|(?:[+-]\s*){2}", statement
    )


def _depth_of_braces(plain: str) -> int:
    depth = deepest = 0
    for sign in re.findall(r"[{}]", plain):
        depth += 1 if sign == "{" else -1
        deepest = max(deepest, depth)
    return deepest


def _expanded_tokens(plain: str, options: Sequence[str]) -> int:
    """Estimate to how many tokens the largest macro expands, capped."""
    text = plain.replace("\\\n", " ")
    bodies: dict[str, tuple[list[str], list[str]]] = {}
    for name, parameters, body in _DEFINITION.findall(text):
        bodies[name] = (_WORD.findall(parameters), _WORD.findall(body))
    for option in options:
        name, _, body = option.removeprefix("-D").partition("=")
        if option.startswith("-D"):
            bodies[name.partition("(")[0]] = ([], _WORD.findall(body))
    sizes: dict[str, int] = {}
    largest = max((_expand(name, bodies, sizes, 0) for name in bodies), default=0)
    uses = 1
    for name, (parameters, body) in bodies.items():
        repeated = max((body.count(one) for one in parameters), default=0)
        if repeated > 1:
            nested = _deepest_use(name, text)
            uses = max(uses, min(_MOST_TOKENS * 2, repeated ** min(nested, 40)))
    return max(largest, uses)


def _expand(
    name: str, bodies: dict[str, tuple[list[str], list[str]]], sizes: dict[str, int], depth: int
) -> int:
    if name in sizes:
        return sizes[name]
    if depth > _MOST_BRACES:
        return _MOST_TOKENS * 2
    sizes[name] = 1  # a macro within its own expansion is not expanded
    parameters, body = bodies[name]
    total = 1 + len(body)
    growth = 1
    for word in body:
        if word in bodies and word != name:
            inner = _expand(word, bodies, sizes, depth + 1)
            total += inner
            if bodies[word][0]:
                growth = min(growth * max(1, inner // 2), _MOST_TOKENS * 2)
    if parameters:
        repeated = max((body.count(one) for one in parameters), default=1)
        total = max(total, growth * max(1, repeated))
    sizes[name] = min(total, _MOST_TOKENS * 2)
    return sizes[name]


def _deepest_use(name: str, text: str) -> int:
    """Count how deep a macro stands within its own arguments."""
    longest = 0
    for match in re.finditer(rf"(?:\b{re.escape(name)}\s*\(\s*)+", text):
        longest = max(longest, match.group().count("("))
    return longest


@lru_cache(maxsize=64)
def _survives(source: str, options: tuple[str, ...]) -> bool:
    """Tell whether a child process gets through parsing and analysis."""
    request = json.dumps({"source": source, "options": list(options)})
    command = [sys.executable, "-m", "kernelcast.features.probe"]
    try:
        done = subprocess.run(
            command, input=request.encode(), capture_output=True, timeout=_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
