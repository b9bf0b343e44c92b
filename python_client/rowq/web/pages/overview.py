"""The queues of a database, and what needs attention."""

from starlette.responses import Response

from rowq.web.view import View

_TREND = 60
"""Samples of a queue's line."""


async def overview(view: View) -> Response:
    """Show all queues."""
    return await _shown(view, "overview.html")


async def queues_part(view: View) -> Response:
    """Show what of the overview changes."""
    return await _shown(view, "parts/queues.html")


async def _shown(view: View, template: str) -> Response:
    sample = await view.sample()
    return await view.page(template, sample=sample, trend=view.sampler.trend(_TREND))
