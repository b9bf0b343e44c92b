"""The database: its URL, tables and sessions."""

import os
from collections.abc import AsyncIterator
from decimal import Decimal
from functools import cache

from sqlalchemy import BigInteger, Identity
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Base class of the tables."""


class Order(Base):
    """An order of a customer."""

    __tablename__ = "shop_order"
    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    customer: Mapped[str]
    total: Mapped[Decimal]


def url() -> str:
    """Return ROWQ_URL as a SQLAlchemy URL with psycopg."""
    return os.environ["ROWQ_URL"].replace("postgresql://", "postgresql+psycopg://", 1)


@cache
def engine() -> AsyncEngine:
    """Return the engine of this process."""
    return create_async_engine(url())


async def session() -> AsyncIterator[AsyncSession]:
    """Yield a session in a transaction, committed unless an exception is raised."""
    async with AsyncSession(engine()) as opened, opened.begin():
        yield opened
