"""Machine description files (YAML): docs/reference/machine-files.md."""

from kernelcast.launches.machine_file.plain import machine_to_plain
from kernelcast.launches.machine_file.reader import parse_machine, read_machine
from kernelcast.launches.machine_file.writer import dump_machine, write_machine

__all__ = ["dump_machine", "machine_to_plain", "parse_machine", "read_machine", "write_machine"]
