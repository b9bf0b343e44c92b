"""Fixtures: Django's test database, and a transaction for each test."""

import os
from collections.abc import Iterator
from typing import Any

import django
import pytest

pytest_plugins = ["rowq.contrib.testing"]

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
django.setup()

from django.db import connection, transaction  # noqa: E402 - after django.setup()
from django.test.utils import (  # noqa: E402
    setup_databases,
    setup_test_environment,
    teardown_databases,
    teardown_test_environment,
)


@pytest.fixture(scope="session")
def database() -> Iterator[None]:
    """Create a database with all migrations, including rowq's."""
    setup_test_environment()
    made = setup_databases(verbosity=0, interactive=False)
    yield
    teardown_databases(made, verbosity=0)
    teardown_test_environment()


@pytest.fixture
def rowq_connection(database: None) -> Iterator[Any]:  # noqa: ARG001 - it creates the database
    """Yield Django's connection in a transaction that is rolled back; rowq_queue works on it."""
    with transaction.atomic():
        yield connection
        transaction.set_rollback(True)
