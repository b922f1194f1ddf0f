"""Runs migrations as the store's do, on the connection that the service hands over."""

from kernelcast.training_data.store.migrations.env import run

if __name__ == "env_py":  # the name under which alembic runs this file
    run()
