"""Other sizes of a kernel, asked through HTTP: scaled by what the source says that they do."""

from collections.abc import Iterator, Sequence

import pytest
from fastapi.testclient import TestClient

from kernelcast.predictor.answering.processes import CallerProcesses
from kernelcast.records.device import DeviceDescription
from kernelcast.service import ServiceSettings
from kernelcast.service.backend import Backend
from support.service_backend import FIRST, Plain, estimate, make_devices, observe, open_client

SOURCE = """
kernel void product(global const float *a, global const float *b, global float *c, uint n)
{
    const size_t x = get_global_id(0), y = get_global_id(1);
    float sum = 0.0f;
    for (uint k = 0; k < n; ++k)
        sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}
"""


class _Described(Backend):
    """The real backend, of devices that do not exist: nothing can be sampled."""

    def list_devices(self) -> Sequence[DeviceDescription]:
        return make_devices()


@pytest.fixture
def backend(settings: ServiceSettings) -> Iterator[Backend]:
    """Give a backend that reads sources in processes of their own, as the service does."""
    found = _Described(str(settings.database), None, CallerProcesses())
    yield found
    found.close()


@pytest.fixture
def client(settings: ServiceSettings, backend: Backend) -> Iterator[TestClient]:
    """Give a client of a service over it."""
    with open_client(settings, backend) as found:
        yield found


def _multiply(n: int) -> Plain:
    """Describe a product of square matrices."""
    return {
        "code": SOURCE, "kernel": "product", "global_size": [n, n], "local_size": [16, 16],
        "args": [*({"buffer": "float32", "count": n * n} for _ in range(3)),
                 {"scalar": "uint32", "value": n}],
    }  # fmt: skip


def _take_s(n: int) -> float:
    return 1e-10 * n**3


def test_sizes_of_a_matrix_product_are_scaled_by_what_they_do(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the size is eight times the work; the source is not read in the service's process."""

    def fail(*_: object, **__: object) -> None:
        pytest.fail("a stranger's source was read here")

    monkeypatch.setattr("kernelcast.features.analysis.read_facts", fail)
    monkeypatch.setattr("kernelcast.launches.source_check.count_work", fail)
    observe(client, *(
        {"key": str(n), "problem": _multiply(n), "device": FIRST, "seconds": _take_s(n)}
        for n in (256, 512, 1024)
    ))  # fmt: skip
    for n in (128, 2048):
        found = estimate(client, _multiply(n), sampling="never")
        assert found["tier"] == "sizes"
        assert found["seconds"] == pytest.approx(_take_s(n), rel=0.1)
