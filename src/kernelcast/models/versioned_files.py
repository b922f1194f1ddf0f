"""Versions of files under a folder or URL: the latest, a pinned one, and the way back."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version as read_version
from pathlib import Path
from typing import Any, Generic, TypeVar, get_origin

import cattrs
import numpy as np
from cattrs.errors import ForbiddenExtraKeysError

from kernelcast.records.errors import InputError
from kernelcast.records.private_files import make_private_folder

R = TypeVar("R")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_VERSION = re.compile(r"\d{4,}-[0-9a-f]{12}")
_POINTERS = "versions.json"
_COMPUTING = ("kernelcast", "numpy", "scipy", "scikit-learn")


class ModelFileError(InputError):
    """Is raised when a model file is damaged, foreign, of another schema, or not to be trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelVersions:
    name: str
    """``model/device``, or the model alone where it serves all devices."""
    versions: tuple[str, ...] = ()
    latest: str | None = None
    """The newest that was not rolled back; None before the first."""
    pinned: str | None = None
    """The one to use whatever is published."""

    def __post_init__(self) -> None:
        for one in self.versions:
            _check(_VERSION, one, "version")
        if not {self.latest, self.pinned} - {None} <= {*self.versions}:
            raise ValueError(f"{self.latest} or {self.pinned} is none of the versions")

    @property
    def used(self) -> str | None:
        return self.pinned or self.latest

    def choose(self, beginning: str | None = None) -> str | None:
        """Choose the version that begins so, such as ``0002``; without one the one in use."""
        if beginning is None or beginning in self.versions:
            return beginning or self.used
        found = [one for one in self.versions if one.startswith(beginning)]
        if len(found) != 1:
            raise ModelFileError(
                f"{self.name}: {'several versions begin' if found else 'no version begins'} with "
                f"{beginning!r}; there are {', '.join(self.versions)}"
            )
        return found[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionedFiles:
    """Versions of models under a folder or URL, as texts of JSON."""

    url: str
    """Folder, or any URL that fsspec reads and writes."""

    def publish(self, name: str, text: str) -> str:
        """Add a version, which becomes the latest; return its number and the file's digest."""
        known, content = self.find_versions(name), text.encode()
        version = f"{len(known.versions) + 1:04d}-{_digest(content)}"
        write_bytes(self._locate(name, f"{version}.json"), content)
        self._write(replace(known, versions=(*known.versions, version), latest=version))
        return version

    def load(self, name: str, version: str | None = None) -> tuple[bytes, str]:
        """Load a version, the one given, else the pinned one, else the latest, with its place."""
        known = self.find_model(name)
        wanted = known.choose(version) or known.versions[-1]
        url = self._locate(name, f"{wanted}.json")
        content = read_bytes(url)
        if not wanted.endswith(_digest(content)):
            msg = f"{url}: is not the file that was published; roll back, or publish it anew"
            raise ModelFileError(msg)
        return content, url

    def pin(self, name: str, version: str | None) -> ModelVersions:
        """Use one version, or the one that begins so, whatever is published; None ends that."""
        known = self.find_model(name)
        return self._write(replace(known, pinned=known.choose(version) if version else None))

    def roll_back(self, name: str) -> ModelVersions:
        """Make the version before the latest the latest; nothing is deleted."""
        known = self.find_model(name)
        place = known.versions.index(known.latest) if known.latest else 0
        if not place:
            msg = f"{self.url}: {name} has no version before {known.latest}; publish another"
            raise ModelFileError(msg)
        return self._write(replace(known, latest=known.versions[place - 1]))

    def list_models(self) -> tuple[ModelVersions, ...]:
        """List all models by name, none where the place does not exist."""
        import fsspec

        try:
            files, root = fsspec.core.url_to_fs(self.url)
            paths = files.find(root) if files.exists(root) else []
        except (OSError, ValueError, ImportError) as error:
            msg = f"{self.url}: cannot be read ({error}); name another place by --registry"
            raise ModelFileError(msg) from error
        begin, ending = len(root.rstrip("/")) + 1, f"/{_POINTERS}"
        names = [path[begin : -len(ending)] for path in paths if path.endswith(ending)]
        return tuple(self.find_versions(name) for name in sorted(names))

    def find_model(self, name: str) -> ModelVersions:
        found = self.find_versions(name)
        if found.versions:
            return found
        names = ", ".join(one.name for one in self.list_models()) or "none"
        raise ModelFileError(
            f"{self.url}: there is no model {name}; there are: {names}; `kernelcast train` makes "
            "models"
        )

    def find_versions(self, name: str) -> ModelVersions:
        """Find the versions of a model; none where it was never published."""
        url = self._locate(name)
        try:
            held = json.loads(read_bytes(url))
            return ModelVersions(
                name=name, versions=tuple(held["versions"]), latest=held["latest"],
                pinned=held["pinned"],
            )  # fmt: skip
        except ModelFileError as error:
            if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                return ModelVersions(name=name)
            raise
        except (ValueError, KeyError, TypeError) as error:
            msg = f"{url}: the list of versions is damaged ({error!r}); restore it"
            raise ModelFileError(msg) from error

    def _locate(self, name: str, file: str = _POINTERS) -> str:
        _check(_NAME, name, "name")
        return f"{self.url.rstrip('/')}/{name}/{file}"

    def _write(self, known: ModelVersions) -> ModelVersions:
        content = {key: one for key, one in asdict(known).items() if key != "name"}
        write_bytes(self._locate(known.name), json.dumps(content, indent=1).encode())
        return known


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _check(pattern: re.Pattern[str], text: str, what: str) -> None:
    if pattern.fullmatch(text) is None:
        msg = f"registry: {text!r} is no {what}; use letters, digits, dots and dashes"
        raise ModelFileError(msg)


def is_local(url: str) -> bool:
    """Tell a plain path from a URL; paths need no fsspec, which takes a while to import."""
    return "://" not in url and "::" not in url


def read_bytes(url: str) -> bytes:
    try:
        if is_local(url):
            return Path(url).expanduser().read_bytes()
        import fsspec

        with fsspec.open(url, "rb") as file:
            content: bytes = file.read()
    except (OSError, ValueError, ImportError) as error:
        raise ModelFileError(f"{url}: cannot be read ({error}); is the path right?") from error
    return content


def write_bytes(url: str, content: bytes) -> None:
    """Write a file so that readers see all of it or nothing."""
    import fsspec

    try:
        files, path = fsspec.core.url_to_fs(url)
        if is_local(url):
            make_private_folder(Path(path).parent)
        files.makedirs(files._parent(path), exist_ok=True)  # fsspec's own way
        part = f"{path}.part"
        with files.open(part, "wb") as file:
            file.write(content)
        files.mv(part, path)
    except (OSError, ValueError, ImportError) as error:
        msg = f"{url}: cannot be written ({error}); may this folder be written to?"
        raise ModelFileError(msg) from error


def _is_array(kind: Any) -> bool:  # noqa: ANN401 - a type
    return (get_origin(kind) or kind) is np.ndarray


# Unknown fields are refused when they are read back.
CONVERTER = cattrs.Converter(forbid_extra_keys=True, detailed_validation=False)
CONVERTER.register_unstructure_hook_func(_is_array, lambda value: value.tolist())
CONVERTER.register_structure_hook_func(
    _is_array, lambda value, _: np.asarray(value, dtype=np.float64)
)
CONVERTER.register_structure_hook_func(
    lambda kind: kind in (object, float | str, Any), lambda value, _: value
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(Generic[R]):
    """How records of a kind are written as JSON, beside their fields what tells kind and format."""

    kind: type[R]
    what: str
    """As messages call it where they know no file's name."""
    header: Mapping[str, object]
    advice: str = "make it anew"
    digits: int | None = None
    """Significant digits that numbers are rounded to; None keeps all."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def write(self, record: R) -> str:
        plain = CONVERTER.unstructure(record)
        if self.digits is not None:
            plain = json.loads(
                json.dumps(plain), parse_float=lambda text: float(f"{float(text):.{self.digits}g}")
            )
        return json.dumps({**self.header, **plain}, allow_nan=False, **self.options)

    def read(self, content: str | bytes | Mapping[str, Any], source: str = "") -> R:
        try:
            held = dict(content) if isinstance(content, Mapping) else json.loads(content)
            for name, expected in self.header.items():
                found = held.pop(name)
                if found != expected:
                    raise ValueError(f"{name} {found}, this program reads {expected}")
            return CONVERTER.structure(held, self.kind)
        except (
            InputError, KeyError, TypeError, ValueError, AttributeError, RecursionError,
            ForbiddenExtraKeysError,
        ) as failure:  # fmt: skip
            msg = f"{source or self.what}: cannot be read ({failure!r:.200}); {self.advice}"
            raise ModelFileError(msg) from failure


def list_versions() -> dict[str, str]:
    return {name: read_version(name) for name in _COMPUTING}
