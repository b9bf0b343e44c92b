"""Installs rowq."""

from django.db import migrations

from rowq.contrib.django.operations import RunRowqMigration


class Migration(migrations.Migration):  # type: ignore[misc]
    """Migration 1 of rowq."""

    initial = True
    operations = (RunRowqMigration(1),)
