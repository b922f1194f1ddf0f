"""The commands of ``kernelcast models``."""

from typing import TYPE_CHECKING, Any

import click

from kernelcast.cli import options as option
from kernelcast.cli.terminal import show, show_json, show_line
from kernelcast.cli.training_options import registry_option
from kernelcast.models.validation import summarise_report
from kernelcast.reports.numbers import NOTHING
from kernelcast.reports.presenter import Section, Table
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

if TYPE_CHECKING:
    from kernelcast.models.persistence import StoredModel


@click.command("ls", short_help="List the models.")
@registry_option
@option.json_flag
@option.debug
def list_versions(registry_url: str | None, *, as_json: bool) -> None:
    """List the models of the registry with their versions."""
    registry = open_registry(registry_url)
    found = list_models(registry)
    if as_json:
        show_json([_versions_to_json(one) for one in found])
    elif found:
        show(Table(
            columns={"model": "text", "versions": "whole", "in use": "text", "latest": "text",
                     "pinned": "text"},
            rows=[
                (one.name, len(one.versions), *(
                    text or NOTHING for text in (one.used, one.latest, one.pinned)
                ))
                for one in found
            ],
        ))  # fmt: skip
    else:
        show_line(f"{registry.url}: no models yet; `kernelcast train` makes them")


@click.command("show", short_help="Show what is known of a model.")
@click.argument("name", metavar="NAME")
@click.option(
    "--version",
    "version",
    metavar="VERSION",
    help="A version or the beginning of it.  [default: the one in use]",
)
@registry_option
@option.json_flag
@option.debug
def show_model(name: str, version: str | None, registry_url: str | None, *, as_json: bool) -> None:
    """Show what a model has learned from, how good it is, and what it takes."""
    registry = open_registry(registry_url)
    versions = find_model(registry, name)
    wanted = find_version(versions, version) if version else versions.used
    known = {**_versions_to_json(versions), "version": wanted}
    facts = {"model": name, "version": str(wanted), "versions": ", ".join(versions.versions)}
    if is_evidence(name):
        found = model_admin.describe_evidence(registry, name, wanted)
        if as_json:
            show_json({**known, **found})
        else:
            show({**facts, "calibrated with": _plain(found["calibrated"]),
                  "samplers": _plain(found["samplers"])})  # fmt: skip
        return
    stored = registry.load(name, wanted)
    if as_json:
        show_json({**known, **_stored_to_json(stored)})
        return
    learned = stored.model.describe()
    show(
        {
            **facts,
            "schema": f"{stored.schema.id} ({len(stored.schema.names)} features)",
            **{key: _plain(value) for key, value in learned.items() if key != "name"},
            "trained with": _plain(dict(stored.versions)),
        }
    )
    report = stored.report
    if report is None:
        show_line("was not validated")
        return
    show_line(f"validated with one {report.split} held out at a time")
    show(*(Section(title=one, parts=[tabulate_scores(report, one)]) for one in report.devices))


@click.command("pin", short_help="Use one version, whatever is trained later.")
@click.argument("name", metavar="NAME")
@click.argument("version", metavar="VERSION")
@registry_option
@option.json_flag
@option.debug
def pin_version(name: str, version: str, registry_url: str | None, *, as_json: bool) -> None:
    """Use one version (or the one that begins so), whatever is trained later."""
    _tell(activate_version(name, version, registry_url), as_json=as_json)


@click.command("unpin", short_help="Use the latest version again.")
@click.argument("name", metavar="NAME")
@registry_option
@option.json_flag
@option.debug
def unpin_version(name: str, registry_url: str | None, *, as_json: bool) -> None:
    """Use the latest version again."""
    _tell(activate_version(name, None, registry_url), as_json=as_json)


@click.command("rollback", short_help="Make the version before the latest the latest.")
@click.argument("name", metavar="NAME")
@registry_option
@option.json_flag
@option.debug
def roll_back(name: str, registry_url: str | None, *, as_json: bool) -> None:
    """Make the version before the latest the latest; nothing is deleted."""
    _tell(model_admin.roll_back(name, registry_url), as_json=as_json)


def _tell(one: ModelVersions, *, as_json: bool) -> None:
    if as_json:
        show_json(_versions_to_json(one))
        return
    pinned = ", pinned" if one.pinned else ""
    show_line(f"{one.name}: {one.used} is in use{pinned}; the latest is {one.latest}")


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


def _stored_to_json(stored: "StoredModel") -> dict[str, Any]:
    return {
        "schema": stored.schema.id,
        "features": list(stored.schema.names),
        "learned": stored.model.describe(),
        "trained_with": dict(stored.versions),
        "samplers": list(stored.samplers),
        "validation": None if stored.report is None else summarise_report(stored.report),
    }
