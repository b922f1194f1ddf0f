"""Counts how often a compiled program passes a loop that was found in its assembly."""

import subprocess
from pathlib import Path

from kernelcast.sampling.loop_benchmark import RUN

_COUNT = "\tpushfq\n\tincq {}(%rip)\n\tpopfq\n"
_REPORT = """
#include <stdio.h>
long kc_passes, kc_calls;
__attribute__((destructor)) static void kc_report(void)
{
    printf("%ld %ld\\n", kc_passes, kc_calls);
}
"""


def count_passes(assembly: str, label: str, compiler: str, folder: Path) -> float:
    """Run a program and give the passes of a loop per call of the function that holds it."""
    for place, name in ((label, "kc_passes"), (RUN, "kc_calls")):
        start = f"\n{place}:\n"
        assert assembly.count(start) == 1, place
        assembly = assembly.replace(start, start + _COUNT.format(name))
    counted, report = folder / "counted.s", folder / "report.c"
    counted.write_text(assembly, encoding="utf-8")
    report.write_text(_REPORT, encoding="utf-8")
    program = folder / "counted"
    subprocess.run([compiler, str(counted), str(report), "-o", str(program), "-lm"], check=True)
    done = subprocess.run([str(program), "1e-5", "1"], capture_output=True, text=True, check=True)
    passes, calls = map(int, done.stdout.splitlines()[-1].split())
    return passes / calls
