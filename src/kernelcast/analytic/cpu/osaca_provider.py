"""In-core terms from OSACA's port model of a compiled loop; OSACA is an optional package.

OSACA knows the instructions of its data files and no others, and counts an unknown one as free.
Here such a loop is reported as partly covered, its terms as lower bounds.
"""

import importlib
import importlib.util
import warnings
from collections.abc import Sequence
from typing import Any

from kernelcast.analytic.cpu.in_core import InCoreTerms
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.records.errors import InputError

_CHAIN_LIMIT_S = 10
_SHOWN = 4


class OsacaProvider:
    """Predicts the loop that a compiler made of a nest.

    Parameters
    ----------
    assembly : str
        The body of the innermost loop, its label and its jump included (AT&T or Intel syntax).
    architecture : str
        OSACA's short name: ``IVB``, ``SKX``, ``ICL``, ``ZEN4``.
    iterations : float
        Iterations of the source's loop that one pass of the body executes: vector width times
        unrolling.

    Raises
    ------
    InputError
        If OSACA is not installed or does not know the architecture, the body is empty or cannot
        be read, or `iterations` is not above 0.
    """

    name = "osaca"
    executes_all_sides = False

    def __init__(self, assembly: str, *, architecture: str, iterations: float) -> None:
        if iterations <= 0:
            msg = f"one pass of the loop executes {iterations} iterations; expected more than 0"
            raise InputError(msg)
        self._iterations = iterations
        with warnings.catch_warnings():
            # It uses names that newer releases of its parser generator call deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._body = _analyse(assembly, architecture.upper())

    def predict(self, nest: LoopNest, iterations: float) -> InCoreTerms:
        """Give the terms of so many iterations.

        Parameters
        ----------
        nest : LoopNest
            What was compiled; for messages.
        iterations : float
            Those of one cache line of work.
        """
        passes = iterations / self._iterations
        body = self._body
        loading = [one for port, one in body.pressure.items() if port in body.load_paths]
        other = [one for port, one in body.pressure.items() if port not in body.load_paths]
        return InCoreTerms(
            overlapping=passes * max(other, default=0.0),
            non_overlapping=passes * max(loading, default=0.0),
            latency=passes * body.chain,
            provider=self.name,
            coverage=body.coverage,
            notes=tuple(f"{nest.name}: {note}" for note in body.notes()),
        )


class _Body:
    """What OSACA says of a loop body."""

    def __init__(
        self,
        instructions: Sequence[Any],
        chain: float,
        model: Any,  # noqa: ANN401 - OSACA's, untyped
        architecture: str,
    ) -> None:
        ports = model.get_ports()
        self.chain = chain
        # A load passes an address port, then a data path; transfers need the second one.
        self.load_paths = frozenset(model["load_throughput_default"][-1][1])
        self.pressure = {
            port: sum(float(one.port_pressure[place]) for one in instructions)
            for place, port in enumerate(ports)
        }
        self._architecture = architecture
        self._unknown = [one for one in instructions if "tp_unknown" in one.flags]
        self.coverage = 1 - len(self._unknown) / len(instructions)

    def notes(self) -> list[str]:
        """Say which instructions OSACA does not know."""
        if not self._unknown:
            return []
        names = list(dict.fromkeys(one.line.strip() for one in self._unknown))
        shown = "; ".join(names[:_SHOWN]) + ("; ..." if len(names) > _SHOWN else "")
        return [
            f"OSACA's data of {self._architecture} lacks {len(self._unknown)} instructions of the "
            f"loop ({shown}): the in-core terms are lower bounds, coverage "
            f"{100 * self.coverage:.0f} %"
        ]


def require_osaca() -> None:
    """Check that OSACA is installed.

    Raises
    ------
    InputError
        If it is not; says which extra has it.
    """
    if importlib.util.find_spec("osaca") is None:
        msg = "OSACA is not installed; install it with `pip install 'kernelcast[osaca]'`"
        raise InputError(msg)


def _analyse(assembly: str, architecture: str) -> _Body:
    require_osaca()
    tool = importlib.import_module("osaca.osaca")
    semantics = importlib.import_module("osaca.semantics")
    if architecture not in tool.SUPPORTED_ARCHS:
        known = ", ".join(sorted(tool.SUPPORTED_ARCHS))
        msg = f"OSACA does not know architecture {architecture}; it knows {known}"
        raise InputError(msg)
    syntax = tool.BaseParser.detect_ISA(assembly)[1]
    is_x86 = semantics.MachineModel.get_isa_for_arch(architecture) == "x86"
    parser = tool.get_asm_parser(architecture, syntax or "ATT" if is_x86 else None)
    try:
        lines = parser.parse_file(assembly)
    except Exception as error:  # its parsers raise whatever they meet
        msg = f"OSACA cannot read the loop body for {architecture}: {error}"
        raise InputError(msg) from error
    instructions = [one for one in lines if one.mnemonic is not None]
    if not instructions:
        msg = "the loop body holds no instructions; give the assembly of the innermost loop"
        raise InputError(msg)
    model = semantics.MachineModel(arch=architecture)
    meaning = semantics.ArchSemantics(parser, model)
    meaning.normalize_instruction_forms(lines)
    meaning.add_semantics(lines)
    # Its schedule gets better when it runs a second time, as the tool itself does.
    meaning.assign_optimal_throughput(lines)
    meaning.assign_optimal_throughput(lines)
    graph = semantics.KernelDG(lines, parser, model, meaning, _CHAIN_LIMIT_S, False)
    chains = graph.get_loopcarried_dependencies().values()
    chain = max((float(one["latency"]) for one in chains), default=0.0)
    return _Body(instructions, chain, model, architecture)
