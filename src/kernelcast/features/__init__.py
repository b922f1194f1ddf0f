"""OpenCL C source to facts about a kernel."""
