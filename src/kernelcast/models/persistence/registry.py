"""A folder or URL with versions of models: the latest, a pinned one, and the way back."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kernelcast.models.persistence.files import is_local, read_bytes, write_bytes
from kernelcast.models.persistence.format import (
    ModelFileError,
    StoredModel,
    read_model,
    write_model,
)
from kernelcast.models.protocol import FittedModel
from kernelcast.models.validation.report import ValidationReport
from kernelcast.records.feature_vector import FeatureSchema

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_VERSION = re.compile(r"\d{4,}-[0-9a-f]{12}")
_POINTERS = "versions.json"
_DIGEST_LETTERS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointers:
    """What is known of one model's versions.

    Parameters
    ----------
    versions : tuple of str
        In the order they were published.
    latest : str or None
        The one to use unless one is pinned; None before the first.
    pinned : str or None
        The one to use whatever is published.
    """

    versions: tuple[str, ...] = ()
    latest: str | None = None
    pinned: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRegistry:
    """Versions of models under a folder or URL.

    Parameters
    ----------
    url : str
        Folder, or any URL that fsspec reads and writes.
    """

    url: str

    def publish(
        self,
        name: str,
        model: FittedModel,
        schema: FeatureSchema,
        report: ValidationReport | None = None,
        *,
        samplers: Sequence[int] = (),
    ) -> str:
        """Add a version, which becomes the latest; the others stay.

        Parameters
        ----------
        name : str
            Letters, digits, dots and dashes, in folders where it has slashes.
        model : FittedModel
            A trained model of the catalogue.
        schema : FeatureSchema
            Of its features.
        report : ValidationReport, optional
            How good it was found to be.
        samplers : sequence of int
            As in `save_model`.

        Returns
        -------
        str
            The version: a number and the file's digest.
        """
        pointers = self.pointers(name)
        content = write_model(model, schema, report, samplers=samplers)
        digest = hashlib.sha256(content).hexdigest()[:_DIGEST_LETTERS]
        version = f"{len(pointers.versions) + 1:04d}-{digest}"
        write_bytes(self._locate(name, version), content)
        versions = (*pointers.versions, version)
        self._write(name, Pointers(versions=versions, latest=version, pinned=pointers.pinned))
        return version

    def load(
        self,
        name: str,
        version: str | None = None,
        schema: FeatureSchema | None = None,
        *,
        sampler: int | None = None,
    ) -> StoredModel:
        """Load a version: the one given, else the pinned one, else the latest.

        Raises
        ------
        ModelFileError
            If there is none, its file is not the one that was published, or it takes another
            schema or samples of other samplers.
        """
        pointers = self.pointers(name)
        wanted = version or pointers.pinned or pointers.latest
        self._require(name, pointers, wanted)
        url = self._locate(name, str(wanted))
        content = read_bytes(url)
        if not str(wanted).endswith(hashlib.sha256(content).hexdigest()[:_DIGEST_LETTERS]):
            msg = f"{url}: is not the file that was published; roll back, or publish it anew"
            raise ModelFileError(msg)
        return read_model(content, url, schema, sampler=sampler)

    def pin(self, name: str, version: str | None) -> None:
        """Use one version whatever is published; None ends that.

        Raises
        ------
        ModelFileError
            If there is no such version.
        """
        pointers = self.pointers(name)
        if version is not None:
            self._require(name, pointers, version)
        self._write(
            name, Pointers(versions=pointers.versions, latest=pointers.latest, pinned=version)
        )

    def roll_back(self, name: str) -> str:
        """Make the version before the latest the latest.

        Returns
        -------
        str
            What is the latest now.

        Raises
        ------
        ModelFileError
            If there is none before it.
        """
        pointers = self.pointers(name)
        place = pointers.versions.index(pointers.latest) if pointers.latest else 0
        if not place:
            msg = f"{self.url}: {name} has no version before {pointers.latest}; publish another"
            raise ModelFileError(msg)
        latest = pointers.versions[place - 1]
        self._write(
            name, Pointers(versions=pointers.versions, latest=latest, pinned=pointers.pinned)
        )
        return latest

    def pointers(self, name: str) -> Pointers:
        """Give the versions of a model; none where it was never published.

        Raises
        ------
        ModelFileError
            If the name is none, or the list of versions is damaged.
        """
        url = self._locate(name, None)
        if not _exists(url):
            return Pointers()
        try:
            held = json.loads(read_bytes(url))
            found = Pointers(
                versions=tuple(held["versions"]), latest=held["latest"], pinned=held["pinned"]
            )
            _check_pointers(found)
        except (ValueError, KeyError, TypeError) as error:
            msg = f"{url}: the list of versions is damaged ({error!r}); restore it"
            raise ModelFileError(msg) from error
        return found

    def _locate(self, name: str, version: str | None) -> str:
        _check(_NAME, name, "name")
        file = _POINTERS if version is None else f"{version}.skops"
        return f"{self.url.rstrip('/')}/{name}/{file}"

    def _write(self, name: str, pointers: Pointers) -> None:
        write_bytes(self._locate(name, None), json.dumps(asdict(pointers), indent=1).encode())

    def _require(self, name: str, pointers: Pointers, version: str | None) -> None:
        if version is None or version not in pointers.versions:
            known = ", ".join(pointers.versions) or "none"
            msg = f"{self.url}: {name} has no version {version or 'yet'}; there are: {known}"
            raise ModelFileError(msg)


def _exists(url: str) -> bool:
    if is_local(url):
        return Path(url).expanduser().exists()
    import fsspec

    files, path = fsspec.core.url_to_fs(url)
    return bool(files.exists(path))


def _check_pointers(pointers: Pointers) -> None:
    for one in pointers.versions:
        _check(_VERSION, one, "version")
    for named in (pointers.latest, pointers.pinned):
        if named is not None and named not in pointers.versions:
            msg = f"{named} is none of the versions"
            raise ValueError(msg)


def _check(pattern: re.Pattern[str], text: str, what: str) -> None:
    if pattern.fullmatch(text) is None:
        msg = f"registry: {text!r} is no {what}; use letters, digits, dots and dashes"
        raise ModelFileError(msg)
