"""What the pages' Lab asks about kernels and loops that somebody types: nothing of it runs them.

Everything is done in a child process: what was typed may crash a parser, or take for ever.
"""
