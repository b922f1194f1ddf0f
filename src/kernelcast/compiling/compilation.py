"""Compiles a source of OpenCL C, or takes from the cache what the compiler wrote before."""

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from kernelcast.compiling import cache
from kernelcast.compiling.compiler import Compiler, find_compiler, run_limited
from kernelcast.compiling.libraries import (
    BASE_HEADER,
    digest_room,
    find_libclc,
    list_libraries,
)
from kernelcast.compiling.names import find_missing_builtins
from kernelcast.compiling.options import ReadOptions, read_options
from kernelcast.compiling.signatures import Argument, CompiledKernel, read_kernels
from kernelcast.compiling.targets import CodeFormat, Target
from kernelcast.records.dialect import Dialect
from kernelcast.records.errors import CompileError, InputError

_LIMIT_S: Final = 60.0
_WARNINGS: Final = (
    "-Wno-unknown-warning-option", "-Wno-linker-warnings", "-Wno-c23-extensions",
    # Errors since clang 15, remarks in the compilers that most public sources were written for.
    "-Wno-error=int-conversion", "-Wno-error=implicit-int",
    "-Wno-error=incompatible-function-pointer-types",
)  # fmt: skip
_LINES: Final = (
    "-debug-info-kind=line-tables-only",
    "-dwarf-version=4",
    "-fdebug-compilation-dir=.",
)
_CRASHING: Final = "-vectorize-slp"
_PROFILES: Final = {
    True: ("-O1", "-fno-unroll-loops"),
    False: ("-O3", "-vectorize-loops", _CRASHING),
}
# Compilers of OpenCL inline what they can; a call would hide what it does from all that reads.
_INLINE: Final = ("-mllvm", "-inline-threshold=100000")
_CONSTANT_SPACE: Final = re.compile(r"addrspace\(4\)")
_CONSTANT_LOAD: Final = re.compile(r"^  %\S+ = load (?:[^,]|, (?!align|!))*addrspace\(4\).*$")
_CONSTANT_INTRINSIC: Final = re.compile(r"(@llvm\.\S*?)\.p4\b")
_FUNCTION: Final = re.compile(
    r"^define (?:dso_local )?(?:hidden |protected )?"
    r"(?=.*@__clang_ocl_kern_imp_|(?!.*!kernel_arg_addr_space)(?!internal|linkonce|weak))",
    re.MULTILINE,
)
_UNROLL: Final = re.compile(r'\{!"llvm\.loop\.unroll\.(?:full|enable|count)"[^}]*\}')
_NO_INLINE: Final = re.compile(r"^(attributes #\d+ = \{.*?)\bnoinline ", re.MULTILINE)
_REQUIRED_SIZE: Final = re.compile(
    r"^define .*?@([\w$.]+)\(.*!reqd_work_group_size !(\d+)", re.MULTILINE
)
_SIZES: Final = re.compile(r"^!(\d+) = !\{(i32 \d+, i32 \d+, i32 \d+)\}", re.MULTILINE)
_LAUNCH_VARIABLE: Final = "@kernelcast_launch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What a compiler made of a source."""

    text: str
    """LLVM IR or assembly."""
    target: Target
    kernels: tuple[CompiledKernel, ...]
    """Those that the source defines, in its order."""
    log: str
    """Warnings, and options that mean nothing here."""
    missing: tuple[str, ...]
    """Built-in functions that the text calls and does not hold, such as ``read_imagef``; on GPUs
    no such text can run. Calls in LLVM IR and x86 assembly are none of them."""
    compiler: str
    """Which version it was."""

    def require_builtins(self) -> None:
        """Refuse a text that lacks built-in functions.

        Raises
        ------
        CompileError
            If it lacks any; names them.
        """
        if self.missing:
            msg = (
                f"{self.target}: no library here has the built-in functions "
                f"{', '.join(self.missing)}; install libdevice (a CUDA toolkit or the wheel "
                "nvidia-cuda-nvcc) or libclc, or do without them"
            )
            raise CompileError(msg)


def compile_kernel(
    source: str, options: Sequence[str] = (), target: Target | None = None, *,
    dialect: Dialect | None = None, include_folders: Sequence[Path | str] = (),
    source_name: str = "<source>", limit_s: float = _LIMIT_S,
) -> Compiled:  # fmt: skip
    """Compile a source.

    Parameters
    ----------
    source : str
        OpenCL C.
    options : sequence of str
        As for a device's compiler. Those that mean nothing here are named in the log.
    target : Target or None
        None is LLVM IR as written.
    dialect : Dialect or None
        What the device defines; None is a GPU of today.
    include_folders : sequence of Path or str
        Where included files are looked for, after the -I of the options, which must lie within
        these folders. No other file is read.
    source_name : str
        What messages call the source.
    limit_s : float
        Time for the compiler, in seconds.

    Returns
    -------
    Compiled
        The text and what it defines.

    Raises
    ------
    CompileError
        If the compiler refuses the source, with its words; or does not end in time.
    InputError
        If an option or a folder cannot be used.
    MissingExtraError
        If there is no compiler.

    Examples
    --------
    >>> compiled = compile_kernel("kernel void k(global int *a) { a[0] = N; }", ["-DN=7"])
    >>> compiled.kernels[0].name, "store i32 7" in compiled.text
    ('k', True)
    """
    target = target or Target.ir()
    dialect = dialect or Dialect()
    compiler = find_compiler()
    given = read_options(options)
    job = _Job(
        source=source, source_name=_name_safely(source_name), compiler=compiler, target=target,
        given=given, flags=_list_flags(target, dialect, given), limit_s=limit_s,
        folders=_resolve_folders(given.folders, include_folders),
        libraries=list_libraries(target, compiler),
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="kernelcast-compile-") as made:
        key = job.find_key(Path(made))
        entry = cache.read(key)
        if entry is None:
            entry = job.run(Path(made))
            cache.write(key, entry)
    return Compiled(
        text=entry["text"], target=target, log=entry["log"], missing=tuple(entry["missing"]),
        compiler=compiler.identity,
        kernels=tuple(
            CompiledKernel(
                name=one["name"], arguments=tuple(Argument(**each) for each in one["arguments"])
            )
            for one in entry["kernels"]
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """A source and all that decides what the compiler makes of it."""

    source: str
    source_name: str
    compiler: Compiler
    target: Target
    given: ReadOptions
    flags: tuple[str, ...]
    folders: tuple[Path, ...]
    libraries: tuple[Path, ...]
    limit_s: float

    def find_key(self, folder: Path) -> str:
        """Name the content: that of the source and, where it may include files, of all of it."""
        parts: list[str | bytes] = [
            self.source, self.source_name, self.compiler.identity, repr(asdict(self.target)),
            digest_room(), *self.flags, *map(str, self.given.dropped),
        ]  # fmt: skip
        if self.folders:
            self._start(folder, ("-E", "-o", "preprocessed"))
            parts.append(Path(folder, "preprocessed").read_bytes())
        for path in filter(None, (*self.libraries, find_libclc(self.target.format))):
            status = path.stat()
            parts.append(f"{path} {status.st_size} {status.st_mtime_ns}")
        return cache.digest(parts)

    def run(self, folder: Path) -> dict[str, Any]:
        """Compile, with libclc where built-in functions are missing; return what is kept."""
        entry = self._compile(folder, self.libraries)
        libclc = find_libclc(self.target.format)
        if entry["missing"] and libclc is not None:
            entry = self._compile(folder, (*self.libraries, libclc))
        notes = [f"option {option} means nothing here" for option in self.given.dropped]
        return {**entry, "log": "\n".join([*notes, *filter(None, [entry["log"]])])}

    def _compile(self, folder: Path, libraries: Sequence[Path]) -> dict[str, Any]:
        """Compile with these libraries."""
        linked = [word for path in libraries for word in ("-mlink-builtin-bitcode", path.name)]
        how = (*linked, "-disable-llvm-passes", "-emit-llvm", "-o", "front.ll")
        log = self._start(folder, how, libraries)
        front = folder / "front.ll"
        code = front.read_text(encoding="utf-8")
        opened = _open_up(code)
        if self.target.as_written:
            opened = _UNROLL.sub('{!"llvm.loop.unroll.disable"}', opened)
        front.write_text(opened, encoding="utf-8")
        profile = _PROFILES[self.target.as_written]
        form = "-emit-llvm" if self.target.format is CodeFormat.IR else "-S"
        text = self._write(folder, "front.ll", (*profile, form))
        kernels = read_kernels(code, text, self.target)
        if self.target.format is CodeFormat.PTX:
            if any(one.address_space == "constant" for each in kernels for one in each.arguments):
                optimised = self._write(folder, "front.ll", (*profile, "-emit-llvm"))
                (folder / "moved.ll").write_text(_move_constants(optimised), encoding="utf-8")
                text = self._write(folder, "moved.ll", ("-O3", "-disable-llvm-passes", "-S"))
            text = _require_sizes(text, code)
        return {
            "text": text, "log": log, "missing": find_missing_builtins(text, self.target),
            "kernels": [asdict(kernel) for kernel in kernels],
        }  # fmt: skip

    def _start(self, folder: Path, written: Sequence[str], libraries: Sequence[Path] = ()) -> str:
        """Run the front end on the source where it sees no other files; return its warnings."""
        (folder / "source").write_bytes(self.source.encode())
        files = {
            **{path.name: path for path in libraries}, BASE_HEADER.name: BASE_HEADER,
            self.source_name: folder / "source",
        }  # fmt: skip
        (folder / "files.json").write_text(_list_visible(folder, files, self.folders), "utf-8")
        included = [word for path in self.folders for word in ("-I", str(path))]
        command = [
            *self.compiler.command, "-cc1", *self.flags, *included, *written, self.source_name
        ]  # fmt: skip
        status, output = run_limited(command, folder, self.limit_s)
        self._check_included(Path(folder, "included"))
        if status != 0:
            raise CompileError(_shorten(output) or f"the compiler ended with status {status}")
        return output.strip()

    def _write(self, folder: Path, code: str, how: Sequence[str]) -> str:
        """Run the back end on LLVM IR."""
        command = [
            # Inline assembly is copied, not assembled: `.incbin` would read a file.
            *self.compiler.command, "-cc1", *_name_machine(self.target), "-x", "ir", "-w",
            "-no-integrated-as",
            *_INLINE, *how, *_list_back_end_flags(self.target, self.given), "-o", "code", code,
        ]  # fmt: skip
        status, output = run_limited(command, folder, self.limit_s)
        if status < 0 and _CRASHING in command:  # LLVM 22 on eight lanes of sin and pow for AMD
            command.remove(_CRASHING)
            status, output = run_limited(command, folder, self.limit_s)
        if status != 0:
            raise CompileError(_shorten(output) or f"the compiler ended with status {status}")
        return Path(folder, "code").read_text(encoding="utf-8", errors="replace")

    def _check_included(self, listing: Path) -> None:
        """Refuse a file that a link in one of the folders leads out of them to."""
        names = listing.read_text(encoding="utf-8").splitlines() if listing.is_file() else ()
        listing.unlink(missing_ok=True)
        for path in map(Path, names):
            if not path.is_absolute():
                continue  # the header and the source themselves
            real = path.resolve()
            if not any(real.is_relative_to(folder.resolve()) for folder in self.folders):
                msg = (
                    f"{self.source_name}: the included file {path} is a link out of the include "
                    "folders; copy what it needs into one of them"
                )
                raise CompileError(msg)


def _open_up(code: str) -> str:
    """Let the front end's code be inlined: all but kernels is internal.

    Since version 21 clang makes a kernel call a function of its body, which it forbids to inline
    on NVPTX; elsewhere the body would be compiled twice.
    """
    return _FUNCTION.sub("define internal ", _NO_INLINE.sub(r"\1", code))


def _require_sizes(ptx: str, code: str) -> str:
    """Note the work-group sizes that kernels require, which clang leaves out of PTX."""
    sizes = {number: ", ".join(re.findall(r"i32 (\d+)", node)) for number, node in
             _SIZES.findall(code)}  # fmt: skip
    for kernel, number in _REQUIRED_SIZE.findall(code):
        start = ptx.find(f".entry {kernel}(")
        place = ptx.find("\n{", start)
        if start >= 0 and sizes.get(number) and ".reqntid" not in ptx[start:place]:
            ptx = f"{ptx[:place]}\n.reqntid {sizes[number]}{ptx[place:]}"
    return ptx


def _move_constants(code: str) -> str:
    """Move constants to global memory, all but the description of the launch.

    A CUDA launch has no way to pass a pointer to constant memory: where a kernel takes one, the
    constants of its program are read through the read-only path of global memory.
    """
    moved = []
    for line in code.splitlines():
        if _LAUNCH_VARIABLE in line:
            moved.append(line)
            continue
        invariant = ", !invariant.load !999999" if _CONSTANT_LOAD.match(line) else ""
        spaces = _CONSTANT_SPACE.sub("addrspace(1)", line)
        moved.append(_CONSTANT_INTRINSIC.sub(r"\1.p1", spaces) + invariant)
    return "\n".join([*moved, "!999999 = !{}", ""])


def _name_machine(target: Target) -> tuple[str, ...]:
    processor = ("-target-cpu", target.processor) if target.processor else ()
    return ("-triple", target.triple, *processor)


def _list_flags(target: Target, dialect: Dialect, given: ReadOptions) -> tuple[str, ...]:
    """List what clang's front end is told beside files; the user's own options come last."""
    language = given.language or dialect.language
    lines = _LINES if target.as_written else ()
    return (
        *_name_machine(target), "-x", "cl", f"-cl-std={language}",
        *dialect.list_flags(language), "-fdeclare-opencl-builtins", "-nostdsysteminc",
        "-nobuiltininc", "-ivfsoverlay", "files.json", "-header-include-file", "included",
        "-include", BASE_HEADER.name, "-fgnu89-inline", *_WARNINGS, *lines,
        "-O1" if target.as_written else "-O3", *_list_back_end_flags(target, given), *given.flags,
    )  # fmt: skip


def _list_back_end_flags(target: Target, given: ReadOptions) -> tuple[str, ...]:
    """Divide and take roots on NVIDIA's GPUs as its own compiler of OpenCL C does by default."""
    denormals = tuple(flag for flag in given.flags if flag.startswith("-fdenormal"))
    if target.format is not CodeFormat.PTX:
        return denormals
    fast = "-cl-fast-relaxed-math" in given.flags
    exact = "-cl-fp32-correctly-rounded-divide-sqrt" in given.flags
    return (
        "-mllvm", f"-nvptx-prec-divf32={2 if exact else 0 if fast else 1}",
        "-mllvm", f"-nvptx-prec-sqrtf32={int(exact)}", "-ffp-contract=fast", *denormals,
    )  # fmt: skip


def _resolve_folders(
    named: Sequence[str], include_folders: Sequence[Path | str]
) -> tuple[Path, ...]:
    """Put the folders of -I before the others; a relative one is below any of the others.

    Raises
    ------
    InputError
        If a folder of -I lies outside those given, or a folder given is none.
    """
    given = [Path(os.path.abspath(folder)) for folder in include_folders]  # noqa: PTH100
    chosen: list[Path] = []
    for name in named:
        within = [Path(os.path.normpath(folder / name)) for folder in given]
        within = [
            path for path in within
            if any(path.resolve().is_relative_to(folder.resolve()) for folder in given)
        ]  # fmt: skip
        if not within:
            msg = (
                f"build option -I{name}: it leads out of the include folders "
                f"({', '.join(map(str, given)) or 'none were given'}); give one that holds it"
            )
            raise InputError(msg)
        chosen += [path for path in within if path.is_dir()]
    for folder in given:
        if not folder.is_dir() or folder.parent == folder:
            msg = f"include folder {folder}: there is no such folder below the root; give another"
            raise InputError(msg)
    return tuple(dict.fromkeys([*chosen, *given]))


def _name_safely(source_name: str) -> str:
    """Make the name of the source one that neither an option nor another path can be."""
    name = PurePosixPath(source_name.replace("\0", "").replace("\n", " ")).name
    return f"./{name}" if name.startswith("-") else name or "<source>"


def _list_visible(folder: Path, files: Mapping[str, Path], include_folders: Sequence[Path]) -> str:
    """List the only files and folders that the compiler can see, as an overlay of clang's."""
    roots = [
        {"type": "file", "name": os.path.normpath(folder / name), "external-contents": str(path)}
        for name, path in files.items()
    ] + [
        {"type": "directory-remap", "name": str(path), "external-contents": str(path)}
        for path in include_folders
    ]  # fmt: skip
    return json.dumps({
        "version": 0, "case-sensitive": "true", "redirecting-with": "redirect-only",
        "use-external-names": "false", "roots": roots,
    })  # fmt: skip


def _shorten(output: str) -> str:
    """Leave out what a crashed compiler says of itself."""
    return output.partition("PLEASE submit a bug report")[0].strip()
