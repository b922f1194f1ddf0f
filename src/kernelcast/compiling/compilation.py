"""Compiles a source of OpenCL C, or takes from the cache what the compiler wrote before."""

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from kernelcast.compiling import cache
from kernelcast.compiling.compiler import (
    BASE_HEADER,
    ask,
    digest_code,
    find_compiler,
    find_libclc,
    find_libdevice,
    list_libraries,
    run_limited,
)
from kernelcast.compiling.inlining import drop_uncalled, keep_in_registers
from kernelcast.compiling.signatures import CompiledKernel, demangle, read_kernels
from kernelcast.compiling.targets import (
    CodeFormat,
    ReadOptions,
    Target,
    choose_processor,
    read_options,
)
from kernelcast.records.errors import CompileError, InputError, MissingExtraError
from kernelcast.records.kernel import Dialect
from kernelcast.records.plain import CONVERTER

_WARNINGS: Final = (
    "-Wno-unknown-warning-option", "-Wno-linker-warnings", "-Wno-c23-extensions",
    # Errors since clang 15, remarks in the compilers that most public sources were written for.
    "-Wno-error=int-conversion", "-Wno-error=implicit-int",
    "-Wno-error=incompatible-function-pointer-types",
)  # fmt: skip
# With types and names of parameters and members, which line tables lack.
_NOTES: Final = ("-debug-info-kind=limited", "-dwarf-version=4", "-fdebug-compilation-dir=.",
                 "-disable-lifetime-markers")  # fmt: skip
_CRASHING: Final = "-vectorize-slp"
# Compilers of OpenCL inline what they can; a call would hide what it does from all that reads.
_INLINE: Final = ("-mllvm", "-inline-threshold=100000")
_CONSTANT_SPACE: Final = re.compile(r"addrspace\(4\)")
_CONSTANT_LOAD: Final = re.compile(r"^  %\S+ = load (?:[^,]|, (?!align|!))*addrspace\(4\).*$")
_CONSTANT_INTRINSIC: Final = re.compile(r"(@llvm\.\S*?)\.p4\b")
_FUNCTION: Final = re.compile(
    r"\ndefine (?:dso_local )?(?:hidden |protected )?"
    r"(?=.*@__clang_ocl_kern_imp_|(?!.*!kernel_arg_addr_space)(?!internal|linkonce|weak))"
)
_NO_INLINE: Final = re.compile(r"(\nattributes #\d+ = \{.*?)\bnoinline ")
_LAUNCH_VARIABLE: Final = "@kernelcast_launch"
_EXTERN: Final = re.compile(r"^\.extern \.func\s+(?:\([^)]*\)\s*)?([\w$.]+)", re.MULTILINE)
_AMD_REFERENCE: Final = re.compile(r"\b([\w$.]+)@(?:gotpc)?rel32@lo")
_AMD_LABEL: Final = re.compile(r"^([\w$.]+):", re.MULTILINE)
_OF_THE_DRIVER: Final = frozenset({"vprintf", "malloc", "free", "__assertfail"})
_NEVER_HERE: Final = re.compile(r"printf|sampler_t|\w+_(?:image|pipe)\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    text: str
    target: Target
    kernels: tuple[CompiledKernel, ...]
    log: str
    """Warnings, and options that mean nothing here."""
    missing: tuple[str, ...]
    """Built-in functions that the text calls and does not hold, such as ``read_imagef``; on GPUs
    no such text can run. Calls in LLVM IR and x86 assembly are none of them."""
    compiler: str

    def require_builtins(self) -> None:
        if not self.missing:
            return
        never = [name for name in self.missing if _NEVER_HERE.fullmatch(name)]
        advice = (
            "images, samplers, pipes and printf are compiled by a driver of OpenCL only"
            if never
            else "install libdevice (the extra cuda, or a CUDA toolkit) or libclc"
        )
        names = ", ".join(never or self.missing)
        msg = f"{self.target}: no library here has the built-in functions {names}; {advice}"
        raise CompileError(msg)


def compile_kernel(
    source: str, options: Sequence[str] = (), target: Target | None = None, *,
    dialect: Dialect | None = None, include_folders: Sequence[Path | str] = (),
    source_name: str = "<source>", limit_s: float = 60.0,
) -> Compiled:  # fmt: skip
    """Compile OpenCL C; it reads no file but those of its folders, and -I must lie within them."""
    target = target or Target.parse("ir")
    given = read_options(options)
    # A name of the source that neither an option nor another path can be.
    name = PurePosixPath(source_name.replace("\0", "").replace("\n", " ")).name
    name = f"./{name}" if name.startswith("-") else name or "<source>"
    # Folders of -I come before the others; a relative one is below any of the others.
    folders = [Path(os.path.abspath(folder)) for folder in include_folders]  # noqa: PTH100
    chosen: list[Path] = []
    for option in given.folders:
        within = [Path(os.path.normpath(folder / option)) for folder in folders]
        within = [
            path for path in within
            if any(path.resolve().is_relative_to(folder.resolve()) for folder in folders)
        ]  # fmt: skip
        if not within:
            raise InputError(
                f"build option -I{option}: it leads out of the include folders "
                f"({', '.join(map(str, folders)) or 'none were given'}); give one that holds it"
            )
        chosen += [path for path in within if path.is_dir()]
    for folder in folders:
        if not folder.is_dir() or folder.parent == folder:
            msg = f"include folder {folder}: there is no such folder below the root; give another"
            raise InputError(msg)
    flags, back_flags = _list_flags(target, given, dialect or Dialect())
    # All that decides the content, with the files that the source may include.
    parts: list[str | bytes] = [
        source, name, repr(asdict(target)), digest_code(), *flags, *given.dropped,
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="kernelcast-compile-") as made:
        job = _Job(
            source=source, source_name=name, target=target, limit_s=limit_s, folder=Path(made),
            include_folders=tuple(dict.fromkeys([*chosen, *folders])), flags=flags,
            back_flags=back_flags,
        )  # fmt: skip
        if job.include_folders:
            job.start(("-E", "-o", "preprocessed"))
            parts.append((job.folder / "preprocessed").read_bytes())
        key = cache.digest(parts)
        entry = cache.read(key)
        makers = entry and entry["makers"]
        with contextlib.suppress(MissingExtraError):  # what is kept needs no compiler
            makers = _name_makers(target)
        if entry is None or entry["makers"] != makers:
            compiled = job.run([f"option {one} means nothing here" for one in given.dropped])
            entry = {"compiled": asdict(compiled), "makers": _name_makers(target)}
            cache.write(key, entry)
    return CONVERTER.structure(entry["compiled"], Compiled)


def _name_makers(target: Target) -> list[str]:
    """Name the compiler, and the libraries of others that it links."""
    libdevice = find_libdevice() if target.format is CodeFormat.PTX else None
    found = [path for path in (libdevice, find_libclc(target.format)) if path]
    return [find_compiler().identity, *(
        f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in found
    )]  # fmt: skip


def _list_flags(
    target: Target, given: ReadOptions, dialect: Dialect
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List what clang's front end is told beside files, and what of that its back end is told."""
    back = tuple(flag for flag in given.flags if flag.startswith("-fdenormal"))
    if target.format is CodeFormat.PTX:
        # Divide and take roots as NVIDIA's own compiler of OpenCL C does.
        fast = "-cl-fast-relaxed-math" in given.flags
        exact = "-cl-fp32-correctly-rounded-divide-sqrt" in given.flags
        back = (
            # It unrolls loops of 32 turns, and so keeps small arrays in registers.
            "-mllvm", "-unroll-threshold=600",
            "-mllvm", f"-nvptx-prec-divf32={2 if exact else 0 if fast else 1}",
            "-mllvm", f"-nvptx-prec-sqrtf32={int(exact)}", "-ffp-contract=fast", *back,
        )  # fmt: skip
    language = given.language or dialect.language
    return (
        "-x", "cl", f"-cl-std={language}", *dialect.list_flags(language),
        "-fdeclare-opencl-builtins", "-nostdsysteminc", "-nobuiltininc", "-ivfsoverlay",
        "files.json", "-header-include-file", "included", "-include", BASE_HEADER.name,
        "-fgnu89-inline", "-cl-kernel-arg-info", *_WARNINGS,
        "-O1" if target.as_written else "-O3", *back,
        *given.flags,  # the user's own options come last
    ), back  # fmt: skip


@dataclass(slots=True, kw_only=True)
class _Job:
    """A source and all that decides what the compiler makes of it."""

    source: str
    source_name: str
    target: Target
    include_folders: tuple[Path, ...]
    limit_s: float
    folder: Path
    flags: tuple[str, ...]
    back_flags: tuple[str, ...]

    def run(self, notes: list[str]) -> Compiled:
        """Compile, with libclc where functions are missing, for the newest GPU known."""
        target, compiler = self.target, find_compiler()
        if target.format is CodeFormat.PTX:
            asked = ("-cc1", "-triple", target.triple, "-print-supported-cpus")
            known = re.findall(r"^\t(\S+)$", ask((*compiler.command, *asked)), re.MULTILINE)
            self.target = replace(target, processor=choose_processor(target.processor, known))
        if self.target != target:
            notes.append(f"{compiler.identity} does not know {target}; this is {self.target}'s")
        libraries = list_libraries(target, self.folder)
        compiled = self._compile(libraries)
        libclc = find_libclc(target.format)
        if compiled.missing and libclc is not None:
            compiled = self._compile((*libraries, libclc))
        log = "\n".join(filter(None, [*notes, compiled.log]))
        return replace(compiled, target=target, log=log)

    def _compile(self, libraries: Sequence[Path]) -> Compiled:
        linked = [word for path in libraries for word in ("-mlink-builtin-bitcode", path.name)]
        linked += _NOTES if self.target.as_written else ()
        how = (*linked, "-disable-llvm-passes", "-emit-llvm", "-o", "front.ll")
        log = self.start(how, libraries)
        front = self.folder / "front.ll"
        code = drop_uncalled(front.read_text(encoding="utf-8"))
        # Let code be inlined that clang 21 forbids to, and make all but kernels internal.
        text = _FUNCTION.sub("\ndefine internal ", _NO_INLINE.sub(r"\1", code))
        kernels = read_kernels(code)
        names: set[str] = set()
        if self.target.as_written:
            text = keep_in_registers(text)
        else:
            front.write_text(text, encoding="utf-8")
            # A CUDA launch cannot pass a pointer to constant memory.
            moves = self.target.format is CodeFormat.PTX and any(
                one.address_space == "constant" for each in kernels for one in each.parameters
            )
            form = "-emit-llvm" if moves or self.target.format is CodeFormat.IR else "-S"
            text = self._write("-O3", "-vectorize-loops", _CRASHING, form)
            if moves:  # what stands in constant memory goes to global memory
                moved = []
                for line in text.splitlines():
                    if _LAUNCH_VARIABLE not in line:
                        invariant = _CONSTANT_LOAD.match(line) and ", !invariant.load !999999"
                        line = _CONSTANT_SPACE.sub("addrspace(1)", line)
                        line = _CONSTANT_INTRINSIC.sub(r"\1.p1", line) + (invariant or "")
                    moved.append(line)
                front.write_text("\n".join([*moved, "!999999 = !{}", ""]), encoding="utf-8")
                text = self._write("-O3", "-disable-llvm-passes", "-S")
        if self.target.format is CodeFormat.PTX:
            names = set(_EXTERN.findall(text))
            for kernel in kernels:  # clang leaves the sizes that they require out of PTX
                start = text.find(f".entry {kernel.name}(")
                place = text.find("\n{", start)
                is_noted = start < 0 or ".reqntid" in text[start:place]
                if any(kernel.required_local_size) and not is_noted:
                    size = ", ".join(map(str, kernel.required_local_size))
                    text = f"{text[:place]}\n.reqntid {size}{text[place:]}"
        elif self.target.format is CodeFormat.AMD:
            names = {*_AMD_REFERENCE.findall(text)} - {*_AMD_LABEL.findall(text)}
        return Compiled(
            text=text, target=self.target, kernels=kernels, log=log,
            missing=tuple(sorted(map(demangle, names - _OF_THE_DRIVER))),
            compiler=find_compiler().identity,
        )  # fmt: skip

    def start(self, written: Sequence[str], libraries: Sequence[Path] = ()) -> str:
        """Run the front end on the source where it sees no other files; return its warnings."""
        (self.folder / "source").write_bytes(self.source.encode())
        files = {
            **{path.name: path for path in libraries}, BASE_HEADER.name: BASE_HEADER,
            self.source_name: self.folder / "source",
        }  # fmt: skip
        # The overlay lists the only files and folders that the compiler can see.
        roots = [
            {"type": "file", "name": os.path.normpath(self.folder / name),
             "external-contents": str(path)} for name, path in files.items()
        ] + [
            {"type": "directory-remap", "name": str(path), "external-contents": str(path)}
            for path in self.include_folders
        ]  # fmt: skip
        overlay = json.dumps({
            "version": 0, "case-sensitive": "true", "redirecting-with": "redirect-only",
            "use-external-names": "false", "roots": roots,
        })  # fmt: skip
        (self.folder / "files.json").write_text(overlay, "utf-8")
        included = [word for path in self.include_folders for word in ("-I", str(path))]
        return self._run(*self.flags, *included, *written, self.source_name)

    def _write(self, *how: str) -> str:
        """Make code of what the front end has written."""
        self._run(
            # Inline assembly is copied, not assembled: `.incbin` would read a file.
            "-x", "ir", "-w", "-no-integrated-as", *_INLINE, *how, *self.back_flags,
            "-o", "code", "front.ll",
        )  # fmt: skip
        return (self.folder / "code").read_text(encoding="utf-8", errors="replace")

    def _run(self, *words: str) -> str:
        processor = ("-target-cpu", self.target.processor) if self.target.processor else ()
        command = (*find_compiler().command, "-cc1", "-triple", self.target.triple, *processor)
        status, output = run_limited((*command, *words), self.folder, self.limit_s)
        if status < 0 and _CRASHING in words:  # LLVM 22 on eight lanes of sin and pow for AMD
            return self._run(*(word for word in words if word != _CRASHING))
        listing = self.folder / "included"
        names = listing.read_text(encoding="utf-8").splitlines() if listing.is_file() else ()
        for path in map(Path, names):
            if not path.is_absolute():
                continue  # the header and the source themselves
            real = path.resolve()
            if not any(real.is_relative_to(one.resolve()) for one in self.include_folders):
                raise CompileError(
                    f"{self.source_name}: the included file {path} is a link out of the include "
                    "folders; copy what it needs into one of them"
                )
        if status != 0:
            # A crashed compiler says much of itself.
            said = output.partition("PLEASE submit a bug report")[0].strip()
            raise CompileError(said or f"the compiler ended with status {status}")
        return output.strip()
