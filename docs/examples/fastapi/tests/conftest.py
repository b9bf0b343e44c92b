"""Fixtures: the test database, and a client of the API."""

import os
from collections.abc import Iterator

import psycopg
import pytest
from alembic import command
from alembic.config import Config
from fastapi.testclient import TestClient
from shop.app import create_app

import rowq

pytest_plugins = ["rowq.contrib.testing"]


@pytest.fixture(scope="session")
def rowq_url() -> str:
    """Migrate the database for rowq's fixtures."""
    command.upgrade(Config("alembic.ini"), "heads")
    return os.environ["ROWQ_URL"]


@pytest.fixture
def client(rowq_url: str) -> Iterator[TestClient]:
    """Yield a client of the API; remove the rows of its requests."""
    with TestClient(create_app()) as client:
        yield client
    with psycopg.connect(rowq_url) as connection:
        connection.execute("truncate shop_order restart identity cascade")
        rowq.Queue(connection).purge_queue("notifications")
