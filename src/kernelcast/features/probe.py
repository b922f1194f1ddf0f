"""Parses and analyses a source that may end the process: run as a program, it is a child's work."""

import json
import sys
from contextlib import suppress

from kernelcast.features.analysis import divide_source
from kernelcast.features.parsing import list_kernels, parse_unchecked
from kernelcast.records.errors import KernelcastError

_MOST_BYTES = 4 << 30


def main() -> None:
    """Read source and options from standard input; end in peace if all goes well."""
    _limit_memory()
    request = json.loads(sys.stdin.read())
    with suppress(KernelcastError):
        parsed = parse_unchecked(request["source"], request["options"])
        for name in list_kernels(parsed):
            with suppress(KernelcastError):
                divide_source(parsed, name)


def _limit_memory() -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))


if __name__ == "__main__":
    main()
