"""The page of a validation: tables and pictures in one HTML file."""

from kernelcast.cli.validate.page.page import write_validation_page

__all__ = ["write_validation_page"]
