"""Alembic's entry: runs the versions on the connection that `memctl.infra.log.migrate` hands over."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, version_table="schema_version", version_table_schema="memctl")
connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS memctl")
with context.begin_transaction():
    context.run_migrations()
