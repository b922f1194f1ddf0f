"""48 kernels of many fields, written by somebody who had not seen what answers do with others."""

from short_kernels.cases import SETS

from unseen_kernels import bits, learning, media, science, solvers, tables

CASES = SETS[__name__]

__all__ = ["CASES", "bits", "learning", "media", "science", "solvers", "tables"]
