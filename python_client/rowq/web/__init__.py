"""A web page of the queues of a database, mounted in an application or served alone.

    app.mount("/rowq", rowq.web.create_app(url, authorize=may_look))

app.py builds the application around the shared state of site.py; serving.py serves and ends it.
access.py authorizes requests, databases.py calls the routines, and sampler.py samples the database
once for all pages. pages.py and actions.py answer requests. In static/, files with a license next
to them are third-party. Needs the extra `web`; the rest of rowq does not import it.
"""

from rowq.errors import PackageMissing

try:
    import jinja2
    import starlette
except ImportError as error:
    raise PackageMissing("Starlette or Jinja2 is missing; run pip install 'rowq[web]'") from error

from rowq.web.app import create_app
from rowq.web.serving import end, page_lifespan

__all__ = ["create_app", "end", "page_lifespan"]

del jinja2, starlette
