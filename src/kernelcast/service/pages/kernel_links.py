"""Where the page of a kernel is."""

from urllib.parse import urlencode


def link_kernel(kernel: str) -> str:
    """Give the address of a kernel's page; its name may hold anything.

    Examples
    --------
    >>> link_kernel("polybench/2mm")
    '/kernels/of?name=polybench%2F2mm'
    """
    return f"/kernels/of?{urlencode({'name': kernel})}"
