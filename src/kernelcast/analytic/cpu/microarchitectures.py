"""Micro-architectures of CPUs: OSACA's names for them, gcc's, and how a processor tells its own."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroArchitecture:
    """A generation of processors.

    Parameters
    ----------
    name : str
        OSACA's.
    target : str
        Of ``-march=``, for gcc and clang.
    family : int
        Of CPUID.
    models : frozenset of int
        Of the family.
    words : tuple of str
        Any of them in the name of a machine tells it, in small letters.
    stands_for : str
        The newer one that it is taken for, as OSACA has no data of it; empty if it is meant itself.
    """

    name: str
    target: str
    family: int
    models: frozenset[int]
    words: tuple[str, ...]
    stands_for: str

    @property
    def notes(self) -> tuple[str, ...]:
        """Say what stands in for what."""
        if not self.stands_for:
            return ()
        return (f"OSACA has no data of {self.stands_for}: {self.name} stands in for it",)


def _know(
    name: str, target: str, family: int, models: Sequence[int], *words: str, stands_for: str = ""
) -> MicroArchitecture:
    return MicroArchitecture(
        name=name, target=target, family=family, models=frozenset(models), words=words,
        stands_for=stands_for,
    )  # fmt: skip


# Families and models as in Intel's Software Developer's Manual, volume 4, table 2-1, and in AMD's
# revision guides.
KNOWN = (
    _know("SNB", "sandybridge", 6, (0x2A, 0x2D), "sandy bridge"),
    _know("IVB", "ivybridge", 6, (0x3A, 0x3E), "ivy bridge", "e5-2690 v2"),
    _know("HSW", "haswell", 6, (0x3C, 0x3F, 0x45, 0x46), "haswell"),
    _know("BDW", "broadwell", 6, (0x3D, 0x47, 0x4F, 0x56), "broadwell"),
    _know("SKX", "skylake-avx512", 6, (0x55,), "skylake", "gold 61"),
    _know("CSX", "cascadelake", 6, (), "cascade lake"),
    _know("ICL", "icelake-client", 6, (0x7D, 0x7E), "ice lake"),
    _know("ICX", "icelake-server", 6, (0x6A, 0x6C)),
    _know("SPR", "sapphirerapids", 6, (0x8F,), "sapphire rapids"),
    _know("SPR", "sapphirerapids", 6, (0xAD, 0xAE, 0xCF), stands_for="later processors"),
    _know("ZEN1", "znver1", 0x17, range(0x30)),
    _know("ZEN2", "znver2", 0x17, range(0x30, 0x100)),
    _know("ZEN3", "znver3", 0x19, (*range(0x10), *range(0x20, 0x60))),
    _know("ZEN4", "znver4", 0x19, (*range(0x10, 0x20), *range(0x60, 0x100))),
    _know("ZEN4", "znver4", 0x1A, range(0x100), stands_for="Zen 5"),
)


def find_by_generation(generation: str) -> MicroArchitecture | None:
    """Find the one of a processor's family and model, such as ``6 85``; None if nobody knows it.

    Examples
    --------
    >>> found = find_by_generation("6 62")
    >>> found and found.name
    'IVB'
    """
    family, _, model = generation.partition(" ")
    if not (family.isdecimal() and model.isdecimal()):
        return None
    key = int(family), int(model)
    return next((one for one in KNOWN if one.family == key[0] and key[1] in one.models), None)


def find_by_machine(*names: str) -> MicroArchitecture | None:
    """Find the one that a machine description's id or name tells."""
    told = " ".join(names).lower().replace("ivy-bridge", "ivy bridge")
    return next((one for one in KNOWN if any(word in told for word in one.words)), None)


def find_by_name(name: str) -> MicroArchitecture:
    """Find one by OSACA's name for it.

    Raises
    ------
    InputError
        If there is none.
    """
    found = next((one for one in KNOWN if one.name == name.upper()), None)
    if found is None:
        known = ", ".join(dict.fromkeys(one.name for one in KNOWN))
        msg = f"loops cannot be compiled for {name}; expected one of {known}"
        raise InputError(msg)
    return found
