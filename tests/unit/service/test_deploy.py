"""What is shipped to run and watch a service: it names what there is."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from fastapi.testclient import TestClient

from kernelcast.service.telemetry import share_counts

DEPLOY = Path(__file__).parents[3] / "docs" / "how-to" / "deploy"
_METRIC = re.compile(r"\b((?:kernelcast|process)_[a-z_]+)")


def _list_expressions() -> dict[str, str]:
    """List every expression of the alerts and of the board, by its title."""
    alerts = yaml.safe_load((DEPLOY / "kernelcast-alerts.yml").read_text(encoding="utf-8"))
    board = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
    found = {one["alert"]: one["expr"] for group in alerts["groups"] for one in group["rules"]}
    for panel in board["panels"]:
        for target in panel["targets"]:
            found[f"{panel['title']} {target['refId']}"] = target["expr"]
    return found


def test_expressions_name_what_is_counted(client: TestClient) -> None:
    """Each metric of the board and the alerts is one of `/metrics`."""
    described = client.get("/metrics").text
    known = dict(re.findall(r"^# TYPE (\S+) (\w+)$", described, re.MULTILINE))
    for title, expression in _list_expressions().items():
        for name in _METRIC.findall(expression):
            bare = re.sub(r"_(total|bucket|count|sum)$", "", name)
            assert name in known or known.get(bare) == "histogram" or f"{bare}_total" in known, name
        for opening, closing in ("()", "[]", "{}"):
            assert expression.count(opening) == expression.count(closing), title


@pytest.mark.parametrize(
    ("name", "command"),
    [
        # Exposes less than systemd calls medium.
        ("kernelcast.service",
         "systemd-analyze security --offline=true --threshold=40 --no-pager"),
        ("kernelcast-alerts.yml", "promtool check rules"),
        ("prometheus.yml", "promtool check config --syntax-only"),
        ("Caddyfile", "caddy validate --adapter caddyfile --config"),
        ("Dockerfile", "hadolint"),
    ],
)  # fmt: skip
def test_each_files_own_tool_accepts_it(name: str, command: str) -> None:
    """Where the tool is; nginx.conf serves in `test_service_nginx`."""
    program, *options = command.split()
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"no {program}")
    done = subprocess.run(
        [found, *options, str(DEPLOY / name)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr


def test_the_image_is_built_of_what_is_there() -> None:
    """Copies files that the list of ignored ones lets through."""
    root, path = DEPLOY.parents[2], DEPLOY / "Dockerfile"
    sent = {
        line[1:] for line in (root / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for line in copied for name in line.split()} == sent
    assert all((root / name).exists() for name in sent)


def test_counts_of_several_processes_go_with_their_service(tmp_path: Path) -> None:
    """However it ends; what one has left that was killed goes at the next start."""
    counts = tmp_path / "counts"
    counts.mkdir()
    (counts / "left").touch()
    with share_counts(counts):
        assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(counts)
        assert not [*counts.iterdir()]
    assert not counts.exists()
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ
