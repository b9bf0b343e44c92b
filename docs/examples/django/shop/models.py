"""The shop's tables."""

from django.db import models


class Order(models.Model):
    """An order of a customer."""

    customer = models.TextField()
    total = models.DecimalField(max_digits=12, decimal_places=2)


class Notification(models.Model):
    """A notification of a customer; one per order, also if its message is delivered again."""

    order = models.OneToOneField(Order, on_delete=models.CASCADE)
    text = models.TextField()
