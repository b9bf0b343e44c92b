"""The API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession

import rowq
from rowq.contrib.fastapi import worker_lifespan
from shop.database import Order, engine, session

# The transaction commits before the response is sent.
Session = Annotated[AsyncSession, Depends(session, scope="function")]

LARGEST = 10_000


class NewOrder(BaseModel):
    """The body of a request."""

    customer: str
    total: Decimal


async def place(order: NewOrder, session: AsyncSession) -> int:
    """Save an order and enqueue its message; both commit with the session."""
    placed = Order(customer=order.customer, total=order.total)
    session.add(placed)
    await session.flush()
    data = {"order_id": placed.id, "customer": placed.customer}
    queue = rowq.AsyncQueue(session)
    await queue.enqueue("notifications", data, message_type="order_placed")
    return placed.id


async def place_one(customer: str, total: float) -> int:
    """Place an order without the API."""
    async with AsyncSession(engine()) as session, session.begin():
        return await place(NewOrder(customer=customer, total=Decimal(str(total))), session)


def create_app(*workers: rowq.Worker) -> FastAPI:
    """Return the API with workers in the same process."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with worker_lifespan(*workers)(app):
            yield
        await engine().dispose()

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders", status_code=201)
    async def post_order(order: NewOrder, session: Session) -> int:
        number = await place(order, session)
        if order.total > LARGEST:
            raise HTTPException(409, "this order requires manual approval")
        return number

    return app
