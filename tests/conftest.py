"""What holds for all tests: no device unless asked for, and no test is judged by its time."""

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

# Shared machines stall for longer than any deadline; print_blob makes a failure repeatable. What
# decides about a change draws the same examples each time; `--hypothesis-profile=thorough` draws
# many more than anybody waits for.
settings.register_profile(
    "kernelcast",
    deadline=None,
    print_blob=True,
    max_examples=50,
    derandomize=bool(os.environ.get("CI")),
)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile("kernelcast")

# Many tests start processes; each would compile the whole package again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Threads of OpenBLAS wait by spinning: beside other work, fits of small matrices take eight times
# as long. The variable tells child processes; here a plugin may have imported NumPy before.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
threadpool_limits(1, user_api="blas")

# Mesa's software device appears once it is named; a choice of the caller's stands.
os.environ.setdefault("RUSTICL_ENABLE", "llvmpipe")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:  # noqa: ANN401 - pytest-xdist's
    """Give one of several processes (`-n 2`) all files that measure devices, others by file.

    Two measurements at once would measure each other. What only looks at results is kept together
    as well, since each process opens every device and builds every kernel anew. Groups would say
    the same, but pytest-xdist 3.8 overlooks them under pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            if not _has_device_tests(config.rootpath / path):
                return path
            return "results" if Path(path).stem in _RESULTS_ONLY else "measurements"

    # Files in their order, in which those that measure come early and small ones last: xdist's own
    # order, by the number of tests, leaves the longest files of few tests to the end.
    config.option.loadscopereorder = False
    return Scheduling(config, log)


_RESULTS_ONLY = frozenset({
    "test_address_expressions", "test_bad_input", "test_buffers", "test_compiler_facts",
    "test_counting", "test_references", "test_sampled_work_groups",
})  # fmt: skip
"""Files of integration tests that ask what devices compute, not how fast."""


@cache
def _has_device_tests(path: Path) -> bool:
    return path.suffix == ".py" and "mark.device" in path.read_text(encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Leave tests of real devices out unless `-m` says something: `-m device` runs them."""
    if not config.option.markexpr:
        config.option.markexpr = "not device"
