"""OpenCL C source to facts about a kernel; the only user of libclang."""
