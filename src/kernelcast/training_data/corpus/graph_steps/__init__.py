"""Steps of algorithms on graphs whose degrees follow a power law."""
