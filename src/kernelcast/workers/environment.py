"""Which environment variables a child process gets."""

import os
from collections.abc import Mapping

# Of runtimes, compilers and libraries that choose or tune devices; nothing that names a place of
# the user's, and no secret.
_KEPT = frozenset({
    "PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "NUMEXPR_MAX_THREADS", "KERNELCAST_CLANG",
})  # fmt: skip
_KEPT_BEGINNINGS = (
    "LC_", "OCL_", "OPENCL_", "POCL_", "RUSTICL_", "LP_", "GALLIUM_", "MESA_", "LIBGL_", "CL_",
    "OMP_", "KMP_", "TBB_", "NUMBA_", "MKL_", "OPENBLAS_", "CUDA_", "NVIDIA_", "HSA_", "HIP_",
    "ROCR_", "GPU_", "AMD_", "IGC_", "NEO_", "ZE_", "SYCL_",
)  # fmt: skip


def child_environment() -> dict[str, str]:
    """Make a child process's environment: ours, with threads of CPU devices kept on their cores.

    Where threads of a CPU device sleep between launches, Linux may wake two of them on one core
    and needs some 10 ms to notice: on PoCL, samples of 2 ms then took exactly twice their time.
    A whole run hardly differs. It works before the runtime is loaded; a choice of the caller's is
    left alone.
    """
    return {"POCL_AFFINITY": "1", **os.environ}


def keep_harmless(environment: Mapping[str, str]) -> dict[str, str]:
    """Keep what devices need to know of an environment; secrets and the user's places go."""
    return {
        name: value
        for name, value in environment.items()
        if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)
    }
