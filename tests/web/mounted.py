"""A FastAPI application with a mounted page, served on an open socket: mounted.py DESCRIPTOR."""

import os
import socket
import sys

import uvicorn
from fastapi import FastAPI, HTTPException
from starlette.applications import Starlette
from starlette.requests import Request

import rowq.web
from rowq.web.access import Level

PATH = "/intern/rowq"


async def authorize(request: Request) -> Level:
    """Authorize by a header."""
    match request.headers.get("X-Team"):
        case "shop":
            return "act"
        case "press":
            return "look"
    raise HTTPException(401, "login required", {"WWW-Authenticate": "Team"})


def application(url: str) -> tuple[FastAPI, Starlette]:
    """Return an application with a page of this database, and the page."""
    page = rowq.web.create_app(url, authorize=authorize, title="shop", interval=0.1)
    app = FastAPI(lifespan=rowq.web.page_lifespan(page))

    @app.get("/orders/{number}")
    def order(number: int) -> int:
        return number

    app.mount(PATH, page)
    return app, page


def main(descriptor: int) -> None:
    """Serve the application until a signal."""
    config = uvicorn.Config(application(os.environ["ROWQ_URL"])[0], log_level="warning")
    uvicorn.Server(config).run([socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    main(int(sys.argv[1]))
