"""The application's configuration."""

from django.apps import AppConfig


class RowqConfig(AppConfig):  # type: ignore[misc]
    """What Django is told of rowq; there are no models, as only routines touch rowq's tables."""

    name = "rowq.contrib.django"
    label = "rowq"
    verbose_name = "rowq"
