"""OpenCL kernels on CPU devices: the loop over work-items that CPU runtimes run."""
