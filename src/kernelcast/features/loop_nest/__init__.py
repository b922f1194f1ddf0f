"""C99 listings of loops, as the Kerncraft paper writes them, read into records."""

from kernelcast.features.loop_nest.reading import read_loop_nest

__all__ = ["read_loop_nest"]
