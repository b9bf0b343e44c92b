"""rowq as a broker of Celery's, or of anything else that sends by kombu; the extra `celery`.

Importing this package makes the scheme known: `rowq+postgresql://...`, and the same with every URL
that rowq.connect takes. kombu looks for no entry points of transports, so the program that names
the URL imports it.

>>> import rowq.contrib.celery
>>> app = Celery("shop", broker="rowq+postgresql://user:password@host/database")

Nothing else of rowq imports this package.
"""

from rowq.errors import PackageMissing

try:
    from kombu.transport import TRANSPORT_ALIASES
except ImportError as error:
    raise PackageMissing("rowq.contrib.celery needs kombu: pip install 'rowq[celery]'") from error

from rowq.contrib.celery.channel import Channel, Transport

__all__ = ["Channel", "Transport"]

TRANSPORT_ALIASES["rowq"] = "rowq.contrib.celery.channel:Transport"
