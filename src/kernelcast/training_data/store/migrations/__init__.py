"""How older stores become newer ones; alembic runs this, see `kernelcast.training_data.store`."""
