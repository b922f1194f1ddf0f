"""Runs parts of a kernel on a device and times them; the only user of pyopencl."""
