"""Refuses kernels of which no part can stand for the whole: those that fetch their work."""

from functools import lru_cache

from kernelcast.features.analysis import analyse
from kernelcast.features.work_queues import find_work_queue
from kernelcast.records.errors import InputError, PersistentKernelError
from kernelcast.records.kernel import Kernel


def refuse_persistent(kernel: Kernel) -> None:
    """Refuse a kernel whose work-groups fetch work from a shared queue until it is empty.

    A source that is not understood is not refused: the device's compiler says what is wrong, or
    runs it.
    """
    found = _find_queue(kernel)
    if found:
        msg = (
            f"kernel {kernel.name}: {found}. Such work-groups fetch work until none is left: a few "
            "sampled ones would do everybody's, and the time would be that of any number of them. "
            "Give each work-group its share by its id instead; or time whole runs, and report what "
            "they take as observations of the launch: they answer it then"
        )
        raise PersistentKernelError(msg)


@lru_cache(maxsize=256)
def _find_queue(kernel: Kernel) -> str:
    try:
        found = find_work_queue(analyse(kernel))
    except (InputError, RecursionError):
        return ""
    return str(found) if found else ""
