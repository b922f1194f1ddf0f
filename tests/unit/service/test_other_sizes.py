"""Other sizes of a kernel, asked through HTTP: scaled by what the source says that they do."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from fastapi.testclient import TestClient

from kernelcast.predictor.answering.processes import CallerProcesses
from kernelcast.records.device import DeviceDescription
from kernelcast.service import ServiceSettings
from kernelcast.service.backend import Backend
from support.service_backend import make_devices, open_client

Plain = dict[str, Any]
DEVICE = "fake-device-0000"
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


def _observe(client: TestClient, *sizes: int) -> None:
    seen = [
        {"key": str(n), "problem": _multiply(n), "device": DEVICE, "seconds": _take_s(n)}
        for n in sizes
    ]
    answer = client.post("/v1/observations", json={"observations": seen})
    assert answer.status_code == 200, answer.text


def _ask(client: TestClient, n: int) -> Plain:
    asked = {"problem": _multiply(n), "devices": [DEVICE], "sampling": "never"}
    answer = client.post("/v1/estimates", json=asked)
    assert answer.status_code == 200, answer.text
    found: Plain = answer.json()["estimates"][0]
    return found


@pytest.mark.parametrize("n", [128, 2048])
def test_sizes_of_a_matrix_product_are_scaled_by_what_they_do(client: TestClient, n: int) -> None:
    """Twice the size is eight times the work."""
    _observe(client, 256, 512, 1024)
    found = _ask(client, n)
    assert found["tier"] == "sizes"
    assert found["seconds"] == pytest.approx(_take_s(n), rel=0.1)


def test_the_source_is_not_read_in_the_services_process(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither for observations nor for answers."""

    def fail(*_: object, **__: object) -> None:
        pytest.fail("a stranger's source was read here")

    monkeypatch.setattr("kernelcast.features.analysis.read_facts", fail)
    monkeypatch.setattr("kernelcast.launches.source_check.count_work", fail)
    _observe(client, 256, 512)
    assert _ask(client, 1024)["seconds"] == pytest.approx(_take_s(1024), rel=0.1)
