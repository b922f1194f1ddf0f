"""Hong and Kim's model of GPUs: memory warp parallelism and computation warp parallelism."""
