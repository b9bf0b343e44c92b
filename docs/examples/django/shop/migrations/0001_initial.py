"""The shop's tables and its queue."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Makes them; rowq is there, as this migration depends on rowq's."""

    initial = True
    dependencies = (("rowq", "0001_first_release"),)
    operations = (
        migrations.CreateModel(
            "Order",
            [
                ("id", models.BigAutoField(primary_key=True)),
                ("customer", models.TextField()),
                ("total", models.DecimalField(max_digits=12, decimal_places=2)),
            ],
        ),
        migrations.CreateModel(
            "Notification",
            [
                ("id", models.BigAutoField(primary_key=True)),
                ("text", models.TextField()),
                ("order", models.OneToOneField("shop.Order", models.CASCADE)),
            ],
        ),
        migrations.RunSQL(
            "select rowq.create_queue('notifications', p_max_attempts => 5)",
            "select rowq.drop_queue('notifications', true)",
        ),
    )
