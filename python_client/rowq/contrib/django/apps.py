"""The application's configuration."""

from django.apps import AppConfig


class RowqConfig(AppConfig):  # type: ignore[misc]
    """The application, without models: only routines use rowq's tables."""

    name = "rowq.contrib.django"
    label = "rowq"
    verbose_name = "rowq"
