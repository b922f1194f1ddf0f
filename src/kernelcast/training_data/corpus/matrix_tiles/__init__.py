"""Steps of dense linear algebra on square pieces of matrices."""
