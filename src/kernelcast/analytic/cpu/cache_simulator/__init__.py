"""A set-associative cache simulator: what a stream of loads and stores moves between levels.

`hierarchy` describes caches, `simulation` runs streams of addresses through them, `nest` does so
for a loop nest in its steady state. numba compiles the state machine (`engine`); it is imported
with `simulation` only, which costs half a second that layer conditions need not pay.
"""
