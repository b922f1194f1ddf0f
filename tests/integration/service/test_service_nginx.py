"""The service behind nginx as it is shipped: slow callers, addresses, TLS and bodies."""

import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.running_service import ServiceProcess, find_port, make_token, wait_until

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
pytestmark = [
    pytest.mark.skipif(
        NGINX is None or shutil.which("openssl") is None, reason="apt install nginx"
    ),
    pytest.mark.timeout(600),
]
CONFIG = Path(__file__).parents[3] / "docs" / "how-to" / "deploy" / "nginx.conf"


def _write_config(folder: Path, port: int, service_port: str) -> Path:
    """Write the shipped file with ports, certificates and times of this test, and what holds it."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    text = CONFIG.read_text(encoding="utf-8")
    for before, after in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("127.0.0.1:8372", f"127.0.0.1:{service_port}"),
        ("/etc/ssl/private/kernelcast.key", str(key)),
        ("/etc/ssl/kernelcast.pem", str(certificate)),
        ("_timeout 10s", "_timeout 1s"),
    ):
        assert before in text
        text = text.replace(before, after)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{one}_temp_path {folder}/{one};\n" for one in kinds)
    path = folder / "nginx.conf"
    path.write_text(
        f"daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{temporary}{text}\n}}\n"
    )
    return path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Serve behind nginx; give the port of nginx, the service and a token."""
    folder = tmp_path_factory.mktemp("nginx")
    token = make_token(folder / "data", "all")["token"]
    port = find_port()
    with ServiceProcess(folder / "data", "--no-jobs", "--trusted-proxy", "127.0.0.1") as service:
        config = _write_config(folder, port, service.url.rpartition(":")[2])
        process = subprocess.Popen([str(NGINX), "-c", config, "-p", folder])
        try:
            wait_until(lambda: _listens(process, port, folder / "error.log"), bool)
            yield {"port": port, "service": service, "token": token}
        finally:
            process.terminate()
            process.wait()


@pytest.fixture
def http(served: dict[str, Any]) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {served['token']}"}
    url = f"https://localhost:{served['port']}"
    with httpx.Client(base_url=url, headers=headers, verify=False, timeout=60) as client:
        yield client


def _listens(process: subprocess.Popen[bytes], port: int, errors: Path) -> bool:
    assert process.poll() is None, errors.read_text()
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def _connect(served: dict[str, Any]) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection(("127.0.0.1", served["port"]), timeout=30)
    return context.wrap_socket(plain)


def test_the_caller_is_who_nginx_says(http: httpx.Client, served: dict[str, Any]) -> None:
    """In the audit log and the log of requests, as far as trusted addresses tell it."""
    told = {"x-forwarded-for": "198.51.100.1, 203.0.113.9"}
    assert http.post("/v1/jobs", json={"kind": "train"}, headers=told).status_code == 202
    (entry,) = http.get("/v1/audit").json()["entries"]
    assert entry["remote"] == "203.0.113.9"  # this test is at a trusted address, too
    lines = [one for one in served["service"].read_log() if one.get("path") == "/v1/jobs"]
    assert lines[-1]["client"] == entry["remote"]
    page = http.post(
        "/sign-in", data={"token": served["token"]}, headers={"origin": str(http.base_url)}
    )
    cookie = page.headers["set-cookie"]
    assert cookie.startswith("__Host-kernelcast_token=")
    assert "Secure" in cookie


def test_half_a_request_is_not_waited_for(served: dict[str, Any]) -> None:
    """Headers or a body that do not come end the connection, whoever sends them."""
    head = "POST /v1/observations HTTP/1.1\r\nhost: localhost\r\n"
    head += f"authorization: Bearer {served['token']}\r\n"
    for sent in ("GET /health HTTP/1.1\r\nhost: lo", f"{head}content-length: 100\r\n\r\n{{"):
        with _connect(served) as connection:
            connection.sendall(sent.encode())
            started_s = time.monotonic()
            while connection.recv(4096):
                pass
            assert time.monotonic() - started_s < 20


def test_what_is_too_large_or_not_for_strangers_does_not_pass(http: httpx.Client) -> None:
    """Bodies, headers and `/metrics`."""
    body = b" " * (5 << 20)
    assert http.post("/v1/observations", content=body).status_code == 413
    assert http.get("/health", headers={"x": "x" * 40_000}).status_code == 400
    assert http.get("/metrics").status_code == 404
    assert http.get("/health").json()["status"] == "ok"
