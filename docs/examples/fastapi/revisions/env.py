"""Alembic environment for the database of ROWQ_URL."""

from alembic import context
from shop.database import url
from sqlalchemy import create_engine

with create_engine(url()).connect() as connection:
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()
