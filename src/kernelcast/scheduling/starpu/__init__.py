"""Performance models for StarPU: predictions in, files that its schedulers read out."""
