"""Remembers at which sizes kernels are collected: a resumed collection has the same rows."""

import hashlib
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kernelcast.collection.settings import CollectionSettings
from kernelcast.records.device import DeviceDescription
from kernelcast.records.private_files import make_private_folder
from kernelcast.training_data.applications import CorpusKernel
from kernelcast.training_data.store import StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class SizePlans:
    """A folder with a small file per device and kernel.

    Parameters
    ----------
    folder : Path
        Need not be there yet.
    """

    folder: Path

    def read(
        self, device: DeviceDescription, kernel: CorpusKernel, settings: CollectionSettings
    ) -> tuple[int, ...]:
        """Give the sizes that were chosen before; none if anything they depend on has changed."""
        try:
            content = json.loads(self._path(device, kernel).read_text(encoding="utf-8"))
            if content["depends_on"] == _digest(device, kernel, settings):
                return tuple(int(size) for size in content["sizes"])
        except (OSError, ValueError, KeyError, TypeError):  # not there or damaged: chosen anew
            pass
        return ()

    def write(
        self,
        device: DeviceDescription,
        kernel: CorpusKernel,
        settings: CollectionSettings,
        sizes: tuple[int, ...],
    ) -> None:
        """Keep the sizes of a kernel on a device.

        Raises
        ------
        StoreError
            If the folder cannot be written.
        """
        path = self._path(device, kernel)
        content = {"depends_on": _digest(device, kernel, settings), "sizes": list(sizes)}
        try:
            make_private_folder(path.parent)
            with tempfile.NamedTemporaryFile(
                "w", dir=path.parent, delete=False, encoding="utf-8"
            ) as file:
                json.dump(content, file)
            Path(file.name).replace(path)
        except OSError as error:
            msg = f"{path}: the chosen sizes cannot be kept: {error.strerror or error}"
            raise StoreError(msg) from error

    def _path(self, device: DeviceDescription, kernel: CorpusKernel) -> Path:
        return self.folder / device.id / kernel.application / f"{kernel.stem}.json"


def _digest(device: DeviceDescription, kernel: CorpusKernel, settings: CollectionSettings) -> str:
    """Hash what sizes depend on: driver, files of the application, wanted times."""
    told = hashlib.sha256()
    for path in sorted(kernel.problem_path.parent.glob("*")):
        if path.is_file():
            told.update(path.name.encode() + b"\0" + path.read_bytes())
    wanted = [device.driver, settings.sizes, settings.shortest_s, settings.longest_s]
    told.update(json.dumps(wanted).encode())
    return told.hexdigest()
