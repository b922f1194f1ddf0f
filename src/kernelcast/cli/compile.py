"""``kernelcast compile``."""

from pathlib import Path
from typing import Final

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import present, wants_json
from kernelcast.compiling import Target, compile_kernel, inline_calls, read_facts
from kernelcast.records.plain import pick, to_plain
from kernelcast.reports.presenter import Table

_NUMBERS: Final = (
    "scalar_registers", "waves_per_simd", "local_bytes", "private_bytes", "spill_bytes",
)  # fmt: skip


@option.command(
    "compile", short="Compile OpenCL C for a GPU or a processor, without having one.",
    json="Print a JSON object instead: code, kernels, warnings, missing built-in functions.",
)  # fmt: skip
def compile_command(
    source: Path = option.argument(
        "FILE.cl", type=click.Path(exists=True, dir_okay=False, path_type=Path)
    ),
    target: str = option.given(
        "--target -t TEXT",
        "`ir` (LLVM IR as written), `ir-O3`, an NVIDIA GPU such as sm_90, an AMD GPU such as "
        "gfx90a, `x86`, or a processor as clang names it.",
        default="ir",
    ),
    macros: tuple[str, ...] = option.given(
        "--define -D NAME[=VALUE]", "Define a macro; may be repeated."
    ),
    options: tuple[str, ...] = option.given(
        "--option OPTION", "Give a build option such as -cl-fast-relaxed-math; may be repeated."
    ),
    folders: tuple[Path, ...] = option.given(
        "--include -I FOLDER",
        "Look for included files here; may be repeated. No other file is read.",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
    ),
    shows_facts: bool = option.given(
        "--facts",
        "Show counts of instructions, registers and local memory of each kernel instead of the "
        "code (GPUs).",
    ),
) -> None:
    """Compile OpenCL C to LLVM IR, PTX, AMD or x86 assembly, and print it.

    The compiler is clang 15 or later: that of KERNELCAST_CLANG, else the newest on the path or of
    `pip install 'kernelcast[compile]'`. Warnings go to standard error.
    """
    compiled = compile_kernel(
        source.read_text(encoding="utf-8"),
        [*(f"-D{macro}" for macro in macros), *options],
        Target.parse(target),
        include_folders=folders, source_name=source.name,
    )  # fmt: skip
    if compiled.log and not wants_json():
        click.echo(compiled.log, err=True)
    if compiled.missing and not wants_json():
        click.echo(f"missing built-in functions: {', '.join(compiled.missing)}", err=True)
    content = {
        "target": str(compiled.target), **pick(compiled, "compiler", "log", "missing"),
        "kernels": [one.name for one in compiled.kernels],
    }  # fmt: skip
    if not shows_facts:
        code = inline_calls(compiled.text) if compiled.target.as_written else compiled.text
        present({**content, "code": code})
        if not wants_json():
            click.echo(code, nl=False)
        return
    told, tables = {}, []
    for kernel in compiled.kernels:
        facts = read_facts(compiled, kernel.name)
        registers, numbers = facts.registers, pick(facts, *_NUMBERS)
        told[facts.kernel] = {
            **numbers,
            "registers": pick(registers, "value", "source"),
            "instructions": facts.instructions,
            "accesses": [
                {**to_plain(access), "count": count} for access, count in facts.accesses.items()
            ],
        }
        counts = {f"registers ({registers.source})": registers.value}
        counts |= {name.replace("_", " "): number for name, number in numbers.items()}
        counts |= {f"{kind} instructions": count for kind, count in facts.instructions.items()}
        counts |= {
            f"{access.operation} {access.address_space}, {access.size_bytes} bytes": count
            for access, count in sorted(facts.accesses.items(), key=repr)
        }
        rows = [(name, str(count)) for name, count in counts.items() if count is not None]
        columns = {"what": "text", "count": "number"}
        tables.append(Table(columns=columns, rows=rows, title=facts.kernel))
    present({**content, "facts": told}, *tables)
