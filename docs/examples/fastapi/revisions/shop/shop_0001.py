"""The shop's tables and its queue."""

import sqlalchemy as sa
from alembic import op

revision = "shop_0001"
down_revision = None
branch_labels = ("shop",)
depends_on = "rowq_0001"


def upgrade() -> None:
    """Create them; rowq is installed, because this revision depends on rowq's."""
    op.create_table(
        "shop_order",
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
        sa.Column("customer", sa.Text, nullable=False),
        sa.Column("total", sa.Numeric, nullable=False),
    )
    op.create_table(
        "shop_notification",
        sa.Column("order_id", sa.BigInteger, sa.ForeignKey("shop_order.id"), primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.execute("select rowq.create_queue('notifications', p_max_attempts => 5)")


def downgrade() -> None:
    """Drop them."""
    op.execute("select rowq.drop_queue('notifications', true)")
    op.drop_table("shop_notification")
    op.drop_table("shop_order")
