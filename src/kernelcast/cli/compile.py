"""``kernelcast compile``."""

import json
from pathlib import Path

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import make_table, show
from kernelcast.compiling import CodeFacts, Compiled, Target, compile_kernel, read_facts


@click.command(
    "compile",
    context_settings={"show_default": True},
    short_help="Compile OpenCL C for a GPU or a processor, without having one.",
)
@click.argument(
    "source", metavar="FILE.cl", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--target", "-t", default="ir",
    help="`ir` (LLVM IR as written), `ir-O3`, an NVIDIA GPU such as sm_90, an AMD GPU such as "
    "gfx90a, `x86`, or a processor as clang names it.",
)  # fmt: skip
@click.option(
    "--define", "-D", "macros", multiple=True, metavar="NAME[=VALUE]",
    help="Define a macro; may be repeated.",
)  # fmt: skip
@click.option(
    "--option", "options", multiple=True, metavar="OPTION",
    help="Give a build option such as -cl-fast-relaxed-math; may be repeated.",
)  # fmt: skip
@click.option(
    "--include", "-I", "folders", multiple=True, metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Look for included files here; may be repeated. No other file is read.",
)  # fmt: skip
@option.flag(
    "--facts", "shows_facts",
    says="Show counts of instructions, registers and local memory of each kernel instead of the "
    "code (GPUs).",
)  # fmt: skip
@option.json("Print a JSON object instead: code, kernels, warnings, missing built-in functions.")
@option.debug
def compile_command(
    source: Path, target: str, macros: tuple[str, ...], options: tuple[str, ...],
    folders: tuple[Path, ...], *, shows_facts: bool, as_json: bool,
) -> None:  # fmt: skip
    """Compile OpenCL C to LLVM IR, PTX, AMD or x86 assembly, and print it.

    The compiler is clang 15 or later: that of KERNELCAST_CLANG, else the newest on the path or of
    `pip install 'kernelcast[compile]'`. Warnings go to standard error.
    """
    compiled = compile_kernel(
        source.read_text(encoding="utf-8"), [*(f"-D{one}" for one in macros), *options],
        Target.parse(target), include_folders=folders, source_name=source.name,
    )  # fmt: skip
    if compiled.log and not as_json:
        click.echo(compiled.log, err=True)
    if compiled.missing and not as_json:
        click.echo(f"missing built-in functions: {', '.join(compiled.missing)}", err=True)
    facts = [read_facts(compiled, kernel.name) for kernel in compiled.kernels if shows_facts]
    if as_json:
        click.echo(json.dumps(_list_content(compiled, facts), indent=2))
    elif shows_facts:
        _show_facts(facts)
    else:
        click.echo(compiled.text, nl=False)


def _list_content(compiled: Compiled, facts: list[CodeFacts]) -> dict[str, object]:
    kernels = {
        one.kernel: {
            "registers": {"value": one.registers.value, "source": one.registers.source},
            "scalar_registers": one.scalar_registers, "local_bytes": one.local_bytes,
            "private_bytes": one.private_bytes, "spill_bytes": one.spill_bytes,
            "waves_per_simd": one.waves_per_simd, "instructions": one.instructions,
            "accesses": [
                {"operation": access.operation, "address_space": access.address_space,
                 "size_bytes": access.size_bytes, "count": count}
                for access, count in one.accesses.items()
            ],
        }
        for one in facts
    }  # fmt: skip
    return {
        "target": str(compiled.target), "compiler": compiled.compiler, "log": compiled.log,
        "missing": list(compiled.missing), "kernels": [one.name for one in compiled.kernels],
        **({"facts": kernels} if facts else {"code": compiled.text}),
    }  # fmt: skip


def _show_facts(facts: list[CodeFacts]) -> None:
    for one in facts:
        table = make_table("what", "count", right=("count",), title=one.kernel)
        table.add_row(f"registers ({one.registers.source})", str(one.registers.value))
        for name in ("scalar_registers", "waves_per_simd"):
            if (value := getattr(one, name)) is not None:
                table.add_row(name.replace("_", " "), str(value))
        for name in ("local_bytes", "private_bytes", "spill_bytes"):
            table.add_row(name.replace("_", " "), str(getattr(one, name)))
        for kind, count in one.instructions.items():
            table.add_row(f"{kind} instructions", str(count))
        for access, count in sorted(one.accesses.items(), key=lambda item: repr(item[0])):
            where = f"{access.operation} {access.address_space}, {access.size_bytes} bytes"
            table.add_row(where, str(count))
        show(table)
