"""Views."""

import json

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from rowq.contrib.django import enqueue
from shop.models import Order

LARGEST = 10_000


class NeedsApproval(Exception):  # noqa: N818
    """An order that needs manual approval."""


@transaction.atomic
def place(customer: str, total: str) -> int:
    """Save an order and enqueue its message in one transaction."""
    order = Order.objects.create(customer=customer, total=total)
    data = {"order_id": order.pk, "customer": customer}
    enqueue("notifications", data, message_type="order_placed")
    if float(total) > LARGEST:
        raise NeedsApproval
    return int(order.pk)


@csrf_exempt
@require_POST
def post_order(request: HttpRequest) -> HttpResponse:
    """Place an order."""
    order = json.loads(request.body)
    try:
        number = place(order["customer"], order["total"])
    except NeedsApproval:
        return JsonResponse({"error": "this order requires manual approval"}, status=409)
    return JsonResponse({"order_id": number}, status=201)
