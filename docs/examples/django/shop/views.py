"""What requests do."""

import json

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from rowq.django import enqueue
from shop.models import Order

LARGEST = 10_000


class NeedsAPerson(Exception):  # noqa: N818 - it says what is needed
    """An order that is not taken like this."""


@transaction.atomic
def place(customer: str, total: str) -> int:
    """Save an order and enqueue its message: both are there, or neither."""
    order = Order.objects.create(customer=customer, total=total)
    data = {"order_id": order.pk, "customer": customer}
    enqueue("notifications", data, message_type="order_placed")
    if float(total) > LARGEST:
        raise NeedsAPerson
    return int(order.pk)


@csrf_exempt
@require_POST
def post_order(request: HttpRequest) -> HttpResponse:
    """Place an order."""
    order = json.loads(request.body)
    try:
        number = place(order["customer"], order["total"])
    except NeedsAPerson:
        return JsonResponse({"error": "such an order needs a person to look at it"}, status=409)
    return JsonResponse({"order_id": number}, status=201)
