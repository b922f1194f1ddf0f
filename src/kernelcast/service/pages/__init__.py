"""The web pages: what the API answers, for people."""

from kernelcast.service.pages.mounting import include_pages

__all__ = ["include_pages"]
