"""The commands of ``kernelcast models``."""

from typing import Any

from kernelcast.cli import options as option
from kernelcast.cli.terminal import present
from kernelcast.cli.training_options import REGISTRY
from kernelcast.models.validation.report import summarise_report
from kernelcast.reports.numbers import NOTHING
from kernelcast.reports.presenter import Part, Section, Table
from kernelcast.reports.validation import tabulate_scores
from kernelcast.training import model_admin
from kernelcast.training.model_admin import activate_version
from kernelcast.training.registry import (
    ModelVersions,
    find_model,
    find_version,
    is_evidence,
    list_models,
    open_registry,
)


@option.command("ls", short="List the models.")
def list_versions(
    registry_url: str | None = REGISTRY,
    as_json: bool = option.use(option.json_flag),
) -> None:
    """List the models of the registry with their versions."""
    registry = open_registry(registry_url)
    found = list_models(registry)
    table = Table(
        columns={"model": "text", "versions": "whole", "in use": "text", "latest": "text",
                 "pinned": "text"},
        rows=[
            (one.name, len(one.versions), *(
                text or NOTHING for text in (one.used, one.latest, one.pinned)
            ))
            for one in found
        ],
    )  # fmt: skip
    nothing = f"{registry.url}: no models yet; `kernelcast train` makes them"
    content = [_versions_to_json(one) for one in found]
    present(content, table if found else nothing, as_json=as_json)


@option.command("show", short="Show what is known of a model.")
def show_model(
    registry_url: str | None = REGISTRY,
    as_json: bool = option.use(option.json_flag),
    name: str = option.argument("NAME"),
    version: str | None = option.given(
        "--version VERSION", "A version or the beginning of it.  [default: the one in use]"
    ),
) -> None:
    """Show what a model has learned from, how good it is, and what it takes."""
    registry = open_registry(registry_url)
    versions = find_model(registry, name)
    wanted = find_version(versions, version) if version else versions.used
    known = {**_versions_to_json(versions), "version": wanted}
    facts = {"model": name, "version": str(wanted), "versions": ", ".join(versions.versions)}
    if is_evidence(name):
        found = model_admin.describe_evidence(registry, name, wanted)
        facts |= {
            "calibrated with": _plain(found["calibrated"]), "samplers": _plain(found["samplers"])
        }  # fmt: skip
        present({**known, **found}, facts, as_json=as_json)
        return
    stored = registry.load(name, wanted)
    learned = stored.model.describe()
    facts |= {
        "schema": f"{stored.schema.id} ({len(stored.schema.names)} features)",
        **{key: _plain(value) for key, value in learned.items() if key != "name"},
        "trained with": _plain(dict(stored.versions)),
    }
    report = stored.report
    parts: list[Part] = [facts, "was not validated"]
    if report is not None:
        parts[1] = f"validated with one {report.split} held out at a time"
        parts += [
            Section(title=one, parts=[tabulate_scores(report, one)]) for one in report.devices
        ]
    content = {
        **known,
        "schema": stored.schema.id,
        "features": list(stored.schema.names),
        "learned": learned,
        "trained_with": dict(stored.versions),
        "samplers": list(stored.samplers),
        "validation": None if report is None else summarise_report(report),
    }
    present(content, *parts, as_json=as_json)


@option.command("pin", short="Use one version, whatever is trained later.")
def pin_version(
    registry_url: str | None = REGISTRY,
    as_json: bool = option.use(option.json_flag),
    name: str = option.argument("NAME"),
    version: str = option.argument("VERSION"),
) -> None:
    """Use one version (or the one that begins so), whatever is trained later."""
    _tell(activate_version(name, version, registry_url), as_json=as_json)


@option.command("unpin", short="Use the latest version again.")
def unpin_version(
    registry_url: str | None = REGISTRY,
    as_json: bool = option.use(option.json_flag),
    name: str = option.argument("NAME"),
) -> None:
    """Use the latest version again."""
    _tell(activate_version(name, None, registry_url), as_json=as_json)


@option.command("rollback", short="Make the version before the latest the latest.")
def roll_back(
    registry_url: str | None = REGISTRY,
    as_json: bool = option.use(option.json_flag),
    name: str = option.argument("NAME"),
) -> None:
    """Make the version before the latest the latest; nothing is deleted."""
    _tell(model_admin.roll_back(name, registry_url), as_json=as_json)


def _tell(one: ModelVersions, *, as_json: bool) -> None:
    pinned = ", pinned" if one.pinned else ""
    told = f"{one.name}: {one.used} is in use{pinned}; the latest is {one.latest}"
    present(_versions_to_json(one), told, as_json=as_json)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={_plain(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _versions_to_json(one: ModelVersions) -> dict[str, Any]:
    return {
        "name": one.name, "versions": list(one.versions), "used": one.used, "latest": one.latest,
        "pinned": one.pinned,
    }  # fmt: skip
