"""Predicts how long an OpenCL kernel takes on each device, from samples of a few work-groups."""
