"""The paths of requests."""

from django.urls import path

from shop.views import post_order

urlpatterns = [path("orders", post_order)]
