"""Micro-architectures of CPUs: OSACA's names for them, gcc's, and how a processor tells its own."""

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
    generations : tuple of (int, range)
        Families of CPUID, and models of each.
    words : tuple of str
        Any of them in the name of a machine tells it, in small letters.
    stands_for : str
        The newer one that it is taken for, as OSACA has no data of it; empty if it is meant itself.
    """

    name: str
    target: str
    generations: tuple[tuple[int, range], ...] = ()
    words: tuple[str, ...] = ()
    stands_for: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """Say what stands in for what."""
        if not self.stands_for:
            return ()
        return (f"OSACA has no data of {self.stands_for}: {self.name} stands in for it",)


def _intel(*models: int) -> tuple[tuple[int, range], ...]:
    return tuple((6, range(one, one + 1)) for one in models)


# Families and models as in Intel's Software Developer's Manual, volume 4, table 2-1, and in AMD's
# revision guides.
KNOWN = (
    MicroArchitecture(
        name="SNB", target="sandybridge", generations=_intel(0x2A, 0x2D), words=("sandy bridge",),
    ),
    MicroArchitecture(
        name="IVB", target="ivybridge", generations=_intel(0x3A, 0x3E),
        words=("ivy bridge", "e5-2690 v2"),
    ),
    MicroArchitecture(
        name="HSW", target="haswell", generations=_intel(0x3C, 0x3F, 0x45, 0x46), words=("haswell",)
    ),
    MicroArchitecture(
        name="BDW", target="broadwell", generations=_intel(0x3D, 0x47, 0x4F, 0x56),
        words=("broadwell",),
    ),
    MicroArchitecture(
        name="SKX", target="skylake-avx512", generations=_intel(0x55),
        words=("skylake", "gold 61"),
    ),
    MicroArchitecture(name="CSX", target="cascadelake", words=("cascade lake",)),
    MicroArchitecture(
        name="ICL", target="icelake-client", generations=_intel(0x7D, 0x7E), words=("ice lake",)
    ),
    MicroArchitecture(name="ICX", target="icelake-server", generations=_intel(0x6A, 0x6C)),
    MicroArchitecture(
        name="SPR", target="sapphirerapids", generations=_intel(0x8F), words=("sapphire rapids",)
    ),
    MicroArchitecture(
        name="SPR", target="sapphirerapids", generations=_intel(0xCF, 0xAD, 0xAE),
        stands_for="processors after Sapphire Rapids",
    ),
    MicroArchitecture(name="ZEN1", target="znver1", generations=((0x17, range(0x30)),)),
    MicroArchitecture(name="ZEN2", target="znver2", generations=((0x17, range(0x30, 0x100)),)),
    MicroArchitecture(
        name="ZEN3", target="znver3",
        generations=((0x19, range(0x10)), (0x19, range(0x20, 0x60))),
    ),
    MicroArchitecture(
        name="ZEN4", target="znver4",
        generations=((0x19, range(0x10, 0x20)), (0x19, range(0x60, 0x100))),
    ),
    MicroArchitecture(
        name="ZEN4", target="znver4", generations=((0x1A, range(0x100)),), stands_for="Zen 5",
    ),
)  # fmt: skip


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
    return next(
        (
            one
            for one in KNOWN
            for of_family, models in one.generations
            if of_family == int(family) and int(model) in models
        ),
        None,
    )


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
