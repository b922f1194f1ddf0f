"""Runs parts of a kernel on a device and times them; the only user of pyopencl."""

from functools import cache
from importlib.resources import files


@cache
def read_source(name: str) -> str:
    """Read what devices and compilers are given by the name of a file in `sources`."""
    return (files(__name__) / "sources" / name).read_text(encoding="utf-8")
