"""48 kernels of many fields, chosen by an author who had not seen how answers do on others."""

from unseen_kernels import bits, learning, media, science, solvers, tables
from unseen_kernels.cases import CASES

__all__ = ["CASES", "bits", "learning", "media", "science", "solvers", "tables"]
