"""Makes the evidence models that come with the package anew, from the shipped rows.

``python benchmarks/ship_models.py`` writes ``models/pretrained``: one model for each runtime whose
rows are of today's sampler. The same rows give the same file: rows are sorted, draws are seeded,
numbers are rounded, and the file names rows and libraries.
"""

import shutil
from pathlib import Path

from kernelcast.models.evidence.model import model_to_json
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.predictor.answering.trained_models import find_shipped
from kernelcast.sampling.plan import SAMPLER
from kernelcast.training.evidence import calibrate_evidence
from kernelcast.training.table import machines_beside, read_observations

MEASURED = Path(__file__).resolve().parent.parent / "src/kernelcast/training_data/measured"


def main() -> None:
    """Write the models, and say what they were made of."""
    rows = [one for one in read_observations([MEASURED]) if one.sampler == SAMPLER]
    folder = Path(find_shipped())
    shutil.rmtree(folder, ignore_errors=True)
    files = VersionedFiles(url=str(folder))
    for name, model, _ in calibrate_evidence(rows, machines_beside([MEASURED])):
        if name.startswith("evidence_runtime/"):
            correction = model.correction
            told = "no correction" if correction is None else f"corrected by {correction.learner}"
            version = files.publish(name, model_to_json(model))
            print(f"{name}: {version}, {model.facts['rows']} rows, {told}")


if __name__ == "__main__":
    main()
