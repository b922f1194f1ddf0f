"""What a result has to say about the machine it was measured on."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version

from kernelcast.sampling.host import read_processor


def describe_machine() -> dict[str, object]:
    """Describe processor, load, versions and date; nothing that names the machine itself."""
    return {
        "processor": read_processor().name or platform.processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_1_min": round(os.getloadavg()[0], 2),
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {name: version(name) for name in ("kernelcast", "numpy", "pyopencl")},
    }
