"""Solves many small tridiagonal systems in two parallel ways."""
