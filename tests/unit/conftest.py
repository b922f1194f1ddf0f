"""What holds for tests that need no device."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def no_shipped_models() -> Iterator[None]:
    """Let no model that comes with the package answer: made-up devices are like none of theirs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernelcast.predictor.answering.trained_models.find_shipped", lambda: "")
        yield
