"""Built programs on disk, for runtimes that keep none themselves: the next process builds nothing.

PoCL, Mesa and NVIDIA's driver keep what they compile, as `kernelcast.compiling` does. Intel's
runtime for processors does not: its compiler takes 0.13 s for the first program of a process and
0.05 to 0.08 s for each further one, a stored one 3 ms. Its programs from binaries have no argument
information: the signatures that they had when they were built are kept beside them.
"""

import hashlib
import json
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kernelcast.records.kernel import includes_files
from kernelcast.records.private_files import keep_among
from kernelcast.sampling.building import (
    ARGUMENT_INFO_OPTION,
    build_program,
    list_kernels,
    read_binary,
    read_parameters,
)
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.signature import Parameter

_FORMAT = "kernelcast program 1"
_KEEP_THEMSELVES = frozenset({"Portable Computing Language", "rusticl", "NVIDIA CUDA", "CUDA"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltProgram:
    """A program, and what was found out when it was built."""

    program: cl.Program
    """Built."""
    build_s: float
    """Host time that its compiler took, in seconds: now, or when the program was stored."""
    signatures: Mapping[str, tuple[Parameter, ...]] = field(default_factory=dict)
    """Of its kernels, where the program was stored with them."""


class ProgramStore:
    """Keeps programs in a folder, if there is one; several processes may share it."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def build(
        self, context: cl.Context, device: cl.Device, source: str, options: Sequence[str]
    ) -> BuiltProgram:
        path = self._locate(device, source, options)
        found = None if path is None else _load(path, context, device, options)
        if found is not None:
            return found
        started_s = time.perf_counter()
        program = build_program(context, device, source, tuple(options))
        build_s = time.perf_counter() - started_s
        binary = b"" if path is None else read_binary(program, device)
        if path is not None and binary:
            names = list_kernels(program) if ARGUMENT_INFO_OPTION in options else ()
            head = {
                "digest": hashlib.sha256(binary).hexdigest(),
                "build_s": build_s,
                "signatures": {
                    name: [asdict(one) for one in read_parameters(cl.Kernel(program, name))]
                    for name in names
                },
            }
            with suppress(OSError):  # it is not kept then
                keep_among(path, json.dumps(head).encode() + b"\n" + binary, most=512)
        return BuiltProgram(program=program, build_s=build_s)

    def _locate(self, device: cl.Device, source: str, options: Sequence[str]) -> Path | None:
        platform = device.platform
        if self._folder is None or platform.name in _KEEP_THEMSELVES:
            return None
        if includes_files(source, options):  # files that the key does not hold
            return None
        names = (platform.name, platform.version, device.name, device.version, device.extensions)
        text = repr((_FORMAT, *names, device.driver_version, source, tuple(options)))
        return self._folder / f"{hashlib.sha256(text.encode()).hexdigest()}.program"


def _load(
    path: Path, context: cl.Context, device: cl.Device, options: Sequence[str]
) -> BuiltProgram | None:
    """Read a stored program; None where there is none that is whole and that the driver takes."""
    try:
        head, _, binary = path.read_bytes().partition(b"\n")
        held: dict[str, Any] = json.loads(head)
        if held["digest"] != hashlib.sha256(binary).hexdigest():
            return None
        program = cl.Program(context, [device], [binary])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the log of a build that has nothing to compile
            program.build(options=list(options), devices=[device])
        path.touch()
        signatures = {
            name: tuple(Parameter(**one) for one in parameters)
            for name, parameters in held["signatures"].items()
        }
        build_s = float(held["build_s"])
        return BuiltProgram(program=program, build_s=build_s, signatures=signatures)
    except (OSError, ValueError, KeyError, TypeError, cl.Error):
        return None
