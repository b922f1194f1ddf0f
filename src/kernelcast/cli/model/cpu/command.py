"""``kernelcast model cpu``."""

from typing import Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.model.cpu.request import CpuRequest


@click.command(
    context_settings={"show_default": True},
    short_help="ECM, Roofline and layer conditions of a C loop, or time of an OpenCL kernel.",
)
@click.argument("file", metavar="FILE", type=option.FILE)
@click.option(
    "--machine",
    "machine_name",
    metavar="NAME",
    help="Machine description: a shipped one (ivy-bridge-ep), one calibrated here, or a file.  "
    "[default: the only one calibrated here]",
)
@click.option(
    "-D",
    "defines",
    metavar="NAME VALUE",
    nargs=2,
    multiple=True,
    help="Value of a constant of the loop, or of a parameter of the problem file; a range "
    "FIRST:LAST:STEP of one of them is a sweep. May be repeated.",
)
@click.option(
    "--cache-predictor",
    "predictor",
    type=click.Choice(("lc", "sim")),
    default="lc",
    help="Cache traffic from layer conditions, or from a simulation.",
)
@click.option(
    "--cores", type=click.IntRange(min=1), default=1, help="Busy cores; they share what they share."
)
@click.option(
    "--unit",
    "unit_name",
    metavar="UNIT",
    default="cy/CL",
    help="cy/CL (core cycles per cache line of work), cy/It, It/s, FLOP/s or s.",
)
@click.option(
    "--taken",
    metavar="SHARE",
    type=click.FloatRange(min=0, max=1),
    help="Share of iterations in which conditions on data hold, at random.  [default: unknown; "
    "both sides are executed under a mask]",
)
@click.option(
    "--in-core",
    "given_terms",
    metavar="T_OL,T_NOL",
    help="Cycles per cache line of work in the core, overlapping and not, where you know them.",
)
@click.option(
    "--core",
    type=click.Choice(("auto", "osaca", "table")),
    default="auto",
    help="Time in the core from OSACA of the loop as the C compiler compiles it here, or from the "
    "machine's instruction table; auto takes OSACA where it can, and says why where it cannot.",
)
@option.file(
    "--assembly",
    "assembly_file",
    says="Body of the compiled innermost loop for OSACA, instead of compiling it here; needs "
    "--per-pass.",
)
@click.option(
    "--architecture",
    metavar="NAME",
    default="",
    help="OSACA's name of the processor: IVB, SKX, ICL, ZEN4.  [default: by the machine's name, or "
    "by /proc/cpuinfo where it is this machine]",
)
@click.option(
    "--flags",
    metavar="FLAGS",
    default="",
    help="Of the C compiler, for OSACA and --measure.  [default: -O3, for the machine's processor]",
)
@click.option(
    "--per-pass",
    "iterations_per_pass",
    metavar="N",
    type=click.FloatRange(min=0, min_open=True),
    help="Iterations of the source's loop that one pass of the assembly executes.",
)
@click.option(
    "--overlap",
    "overlapping",
    metavar="LEVEL",
    multiple=True,
    help="A level whose transfers overlap with all else (L2, L3, MEM); may be repeated.",
)
@click.option(
    "--transitions",
    "solved",
    metavar="NAME",
    help="Solve layer conditions for this constant.  [default: the one swept, else the last -D]",
)
@option.flag(
    "--measure",
    "measures",
    says="Compile and run the loop here as well, and show it beside the prediction.",
)
@click.option(
    "--compiler",
    metavar="CC",
    default="",
    help="C compiler, for OSACA and --measure.  [default: $CC, cc, gcc, clang]",
)
@click.option(
    "--device",
    "device_id",
    metavar="ID",
    help="Record on this OpenCL device where accesses of the problem go that depend on data.",
)
@option.plot("Draw the sweep, as .png or .svg.", metavar="FILE")
@option.json("Print JSON; cycles are per cache line.")
@option.debug
def cpu(**options: Any) -> None:  # noqa: ANN401 - CpuRequest has the types
    """Model a loop on a CPU: cache traffic, ECM, Roofline, saturation, where to block.

    FILE is a C99 listing (declarations and one loop nest), or the problem file (.yaml) of an
    OpenCL kernel. Nothing is run without --measure or --device; a loop may be compiled.
    """
    request = CpuRequest(**options)
    if request.is_problem:
        # Each half loads libraries that the other does without.
        from kernelcast.cli.model.cpu.problems import answer_problem

        answer_problem(request)
    else:
        from kernelcast.cli.model.cpu.loops import answer_loop

        answer_loop(request)
