"""Runs migrations on the connection that the service hands over, inside its transaction."""

from alembic import context


def run() -> None:
    """Run what alembic was asked for."""
    attributes = context.config.attributes
    context.configure(
        connection=attributes["connection"],
        version_table=attributes["version_table"],
        # The caller ends the transaction: a migration that fails leaves nothing behind.
        transactional_ddl=True,
    )
    context.run_migrations()


if __name__ == "env_py":  # the name under which alembic runs this file
    run()
