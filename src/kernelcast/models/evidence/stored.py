"""Evidence models as JSON, numbers and names only, and their versions in a registry.

With the package come the errors of the analytic model of CPUs on the corpus. Nothing that is known
of a launch tells how large its error is, so that an interval depends on the runtime only. Runtimes
that nothing was measured on have the intervals of all together.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files

from kernelcast.models.conformal import Calibration
from kernelcast.models.evidence.fusion import Kind
from kernelcast.models.evidence.model import (
    SIGNS,
    SIGNS_OF_DIFFICULTY,
    USUAL_COVERAGE,
    EvidenceModel,
    PlainVariance,
    find_normal_quantile,
)
from kernelcast.models.evidence.sizes import MEASURES
from kernelcast.models.versioned_files import (
    CONVERTER,
    Document,
    ModelFileError,
    VersionedFiles,
)

VERSION = 2
_DOCUMENT = Document(
    kind=EvidenceModel, what="evidence model", advice="calibrate again",
    header={"evidence_model": VERSION, "signs": list(SIGNS), "measures": list(MEASURES)},
    # More digits would tell processors apart, on which sums are rounded differently.
    digits=7, options={"sort_keys": True},
)  # fmt: skip
model_to_json, model_from_json = _DOCUMENT.write, _DOCUMENT.read


def publish_evidence(files: VersionedFiles, name: str, model: EvidenceModel) -> str:
    """Add a version, which becomes the latest; return it."""
    return files.publish_bytes(name, model_to_json(model).encode())


def load_evidence(
    files: VersionedFiles, name: str, version: str | None = None, *, sampler: int | None = None
) -> EvidenceModel:
    """Load a version: the one given, else the pinned one, else the latest."""
    content, url = files.load_bytes(name, version)
    found = model_from_json(content, url, ModelFileError)
    if sampler is not None and sampler not in found.samplers:
        known = ", ".join(map(str, found.samplers)) or "none"
        raise ModelFileError(
            f"{url}: was calibrated with samples of revision {known} of the sampler, not "
            f"{sampler}; `kernelcast train` calibrates anew on rows collected with that"
        )
    return found


ANY = "any"
"""Stands for runtimes that nothing was measured on."""
FILE = "analytic_errors.json"
"""Lies beside this module."""


def find_half_width(errors: Calibration, coverage: float) -> float:
    """Return the logarithm of the factor between an analytic time and the ends of its interval."""
    return errors.half_width_alone((0.0,) * SIGNS_OF_DIFFICULTY, coverage, 1.0)


@lru_cache(maxsize=64)
def know_analytic(model: EvidenceModel, runtime: str) -> EvidenceModel:
    """Return an evidence model that knows how far analytic times are off on a runtime."""
    shipped = load_shipped()
    errors = shipped.get(runtime) or shipped[ANY]
    width = find_half_width(errors, USUAL_COVERAGE)
    deviation = width / find_normal_quantile(USUAL_COVERAGE)
    return replace(
        model,
        plain={**model.plain, Kind.ANALYTIC: PlainVariance(bias=0.0, variance=deviation**2)},
        intervals={**model.intervals, Kind.ANALYTIC.value: errors},
    )


@cache
def load_shipped() -> Mapping[str, Calibration]:
    """Load what comes with the package, by runtime."""
    text = (files("kernelcast.models.evidence") / FILE).read_text(encoding="utf-8")
    return {name: CONVERTER.structure(one, Calibration) for name, one in json.loads(text).items()}
