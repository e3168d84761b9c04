"""The site over HTTP: bound to this machine, for who holds the token, read only."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from pipeprof.errors import PipeprofError, RunError, UsageError
from pipeprof.report import local_server
from pipeprof.report.local_server import HOST
from pipeprof.serve import pages

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.middleware.base import RequestResponseEndpoint
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from pipeprof.serve.site import Site

HEADERS = {
    "Content-Security-Policy": "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
}  # fmt: skip


def bound(port: int) -> socket.socket:
    """A socket that this machine alone can reach. Raises UsageError when the port is taken."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
        made.listen()
    except OSError as error:
        made.close()
        raise UsageError(
            f"cannot serve on port {port}: {error.strerror}", "give another --port, or 0 for any that is free"
        ) from error
    return made


def serve_site(site: Site, at: socket.socket, token: str) -> None:
    """Answer until Ctrl-C."""
    with contextlib.suppress(KeyboardInterrupt):
        server(site, at, token).run(sockets=[at])


def server(site: Site, at: socket.socket, token: str) -> uvicorn.Server:
    """What answers at this socket."""
    content = app(site, token, at.getsockname()[1])
    return uvicorn.Server(
        uvicorn.Config(content, log_level="warning", access_log=False, server_header=False, lifespan="off")
    )


def app(site: Site, token: str, port: int) -> Starlette:
    """The addresses. A request without the token, in the address or then as a cookie, is refused."""
    routes = [
        Route("/", _answer(lambda _request: site.home())),
        Route("/live", _answer(lambda _request: site.now())),
        Route("/live/{name:path}", _answer(lambda request: site.now_of(request.path_params["name"]))),
        Route("/run/{name:path}", _answer(lambda request: site.run(request.path_params["name"]))),
        Route("/compare", _answer(lambda request: site.compare([*map(unquote, request.query_params.getlist("run"))]))),
        Route("/history", _answer(lambda _request: site.history())),
        Route("/fleet", _answer(lambda _request: site.fleet())),
    ]
    inside = [Middleware(_Guard, token=token, port=port)]
    return Starlette(routes=routes, middleware=inside, exception_handlers={404: _unknown})


def _answer(make: Callable[[Request], str]) -> Callable[[Request], Response]:
    """Starlette calls what is no coroutine in a thread, so that one long page keeps no other request waiting."""

    def answer(request: Request) -> Response:
        try:
            return HTMLResponse(make(request))
        except PipeprofError as error:
            status = 400 if isinstance(error, UsageError) else 404 if isinstance(error, RunError) else 422
            return HTMLResponse(pages.problem("This page cannot be made", error.message, error.hint), status)
        except OSError as error:  # a run was moved or removed meanwhile
            said = f"{error.strerror or error}: `{error.filename}`"
            return HTMLResponse(pages.problem("This page cannot be made", said, "Begin with the list of runs."), 404)

    return answer


def _unknown(_request: Request, _error: Exception) -> Response:
    return HTMLResponse(pages.problem("There is no such page", "Begin with the list of runs."), 404)


class _Guard(BaseHTTPMiddleware):
    """Lets in who has the token, and puts the headers of every answer."""

    def __init__(self, inner: ASGIApp, token: str, port: int) -> None:
        super().__init__(inner)
        self._token, self._cookie = token, f"pipeprof-{port}"

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        """The answer, or why there is none."""
        response = await self._answer(request, call_next)
        response.headers.update(HEADERS)
        return response

    async def _answer(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        if not local_server.is_here(request.headers.get("host", "")):
            return PlainTextResponse(local_server.WRONG_HOST, 400)
        given = request.query_params.get("token")
        if given is not None and local_server.is_token(given, self._token):  # from here on it is no part of any address
            response: Response = RedirectResponse(request.url.path, 303)
            response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return response
        if local_server.is_token(request.cookies.get(self._cookie, ""), self._token):
            return await call_next(request)
        return PlainTextResponse(local_server.WRONG_TOKEN, 403)
