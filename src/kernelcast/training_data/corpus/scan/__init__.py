"""Makes prefix sums of blocks, in two ways."""
