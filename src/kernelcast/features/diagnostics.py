"""What libclang complains about, read without a Python object per complaint.

A name that nothing declares may be 700 errors of one source; `cindex` needs 10 us for each.
"""

from collections.abc import Iterator

from clang import cindex

from kernelcast.features.syntax import bindings as clang


def read_errors(unit: cindex.TranslationUnit) -> list[str]:
    """Give the messages of all errors, in libclang's order and without their places."""
    messages: list[str] = []
    for index in range(clang.diagnostic_count(unit.obj)):
        one = clang.diagnostic(unit.obj, index)
        if clang.diagnostic_severity(one) >= cindex.Diagnostic.Error:
            messages.append(clang.take_string(clang.diagnostic_spelling(one)))
        clang.dispose_diagnostic(one)
    return messages


def describe_errors(
    unit: cindex.TranslationUnit, main_file: str, source_name: str
) -> Iterator[str]:
    """Write each error as ``name:line:column: message``."""
    for one in unit.diagnostics:
        if one.severity < cindex.Diagnostic.Error:
            continue
        file, line, column = one.location.file, one.location.line, one.location.column
        if file is None:
            yield f"{source_name}: {one.spelling}"
        else:
            name = source_name if file.name == main_file else file.name
            yield f"{name}:{line}:{column}: {one.spelling}"
