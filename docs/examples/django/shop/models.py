"""The shop's tables."""

from django.db import models


class Order(models.Model):
    """What somebody has ordered."""

    customer = models.TextField()
    total = models.DecimalField(max_digits=12, decimal_places=2)


class Notification(models.Model):
    """What a customer was told; one for an order, however often its message comes."""

    order = models.OneToOneField(Order, on_delete=models.CASCADE)
    text = models.TextField()
