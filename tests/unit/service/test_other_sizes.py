"""Other sizes of a kernel, asked through HTTP: scaled by what the source says that they do."""

from contextlib import closing

import pytest

from kernelcast.predictor.answering.processes import CallerProcesses
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


def _multiply(n: int) -> Plain:
    """Describe a product of square matrices."""
    return {
        "code": SOURCE, "kernel": "product", "global_size": [n, n], "local_size": [16, 16],
        "args": [*({"buffer": "float32", "count": n * n} for _ in range(3)),
                 {"scalar": "uint32", "value": n}],
    }  # fmt: skip


def test_sizes_of_a_matrix_product_are_scaled_by_what_they_do(
    settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the size is eight times the work; the source is not read in the service's process."""

    def fail(*_: object, **__: object) -> None:
        pytest.fail("a stranger's source was read here")

    monkeypatch.setattr("kernelcast.features.analysis.read_facts", fail)
    monkeypatch.setattr("kernelcast.launches.source_check.count_work", fail)
    # Devices that do not exist: nothing can be sampled.
    monkeypatch.setattr(Backend, "list_devices", lambda _: make_devices())
    backend = Backend(str(settings.database), None, CallerProcesses())
    with closing(backend), open_client(settings, backend) as client:
        observe(client, *(
            {"key": str(n), "problem": _multiply(n), "device": FIRST, "seconds": 1e-10 * n**3}
            for n in (256, 512, 1024)
        ))  # fmt: skip
        for n in (128, 2048):
            found = estimate(client, _multiply(n), sampling="never")
            assert found["tier"] == "sizes"
            assert found["seconds"] == pytest.approx(1e-10 * n**3, rel=0.1)
