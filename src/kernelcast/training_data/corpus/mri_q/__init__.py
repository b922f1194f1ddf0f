"""The matrix Q that non-Cartesian MRI reconstruction needs."""
