"""The page of `cagat label` and what it asks for, on this machine and for nobody else.

The address holds a random token, so that no other user of the machine and no page in the browser can guess it. Host and
Origin are checked, so that no page from elsewhere can make the browser ask in its name. There are no cookies, and no
path leads to a file that is not part of the page.
"""

import asyncio
import json
import logging
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cagat.errors import CagatError, ConfigError
from cagat.labelling.session import Session
from cagat.style import SERIES

_logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
LARGEST_BODY = 16_384
"""Bytes that a request may hold, and as many before that."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_FILES = {"": ("label.html", "text/html"), "label.js": ("label.js", "text/javascript")}


class Guard:
    """Refuses requests that were not made by the page, and adds headers to every answer."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        request = Request(scope)
        code = 403
        origin, host = request.headers.get("origin"), request.headers.get("host", "")
        size = len(scope["raw_path"]) + len(scope["query_string"])
        if size + sum(len(name) + len(value) for name, value in scope["headers"]) > LARGEST_BODY:
            code, refused = 431, f"An address and its headers may have {LARGEST_BODY} bytes at most."
        elif host not in self._hosts:
            refused = f"This server does not answer to the name {host[:80]!r}."
        elif origin is not None and origin not in [f"http://{name}" for name in self._hosts]:
            refused = f"Pages of {origin[:80]!r} may not ask here."
        elif request.headers.get("sec-fetch-site") not in (None, "same-origin", "none"):
            refused = "Other pages may not ask here."
        else:
            await self._app(scope, receive, with_headers)
            return
        await JSONResponse({"error": refused}, code)(scope, receive, with_headers)


class Windows:
    """The windows that have the page open; the one that was opened first labels, and the others look on."""

    OTHER = (
        "This graph is open in another window, and that one labels. Close it, or label there; what it does is shown "
        "here, too."
    )

    def __init__(self) -> None:
        self._open: list[str] = []

    @property
    def first(self) -> str | None:
        """The window that labels, if any is open."""
        return self._open[0] if self._open else None

    @contextmanager
    def opened(self, window: str) -> Iterator[None]:
        """A window is open for as long as it listens for news; who has no name looks on."""
        named = [window] if window else []
        self._open += named
        try:
            yield
        finally:
            for name in named:
                self._open.remove(name)

    def refusal(self, window: object) -> str:
        """Why a window may not label; nothing if it may."""
        return "" if self.first in (None, window) else self.OTHER


def make_app(session: Session, token: str, port: int, stopping: Callable[[], bool] = lambda: False) -> Starlette:
    """The application that serves one session.

    Args:
        session: The session.
        token: The first part of every path.
        port: The port that the server listens on.
        stopping: Whether the server is about to end, so that streams end too.
    """

    def page(name: str) -> Callable[[Request], Response]:
        def serve(request: Request) -> Response:
            return Response(_resource(_FILES[name][0]), media_type=_FILES[name][1])

        return serve

    def sheet(request: Request) -> Response:
        common = files("cagat").joinpath("style.css").read_text(encoding="utf-8")
        return Response(common + _resource("label.css"), media_type="text/css")

    windows = Windows()

    def state_for(window: object) -> dict[str, Any]:
        found = session.state()
        return {**found, "readOnly": found["readOnly"] or windows.refusal(window), "colours": SERIES}

    def state(request: Request) -> Response:
        return JSONResponse(state_for(request.query_params.get("window")))

    def node(request: Request) -> Response:
        return JSONResponse(session.node(_integer(request.query_params.get("index"))))

    def search(request: Request) -> Response:
        return JSONResponse({"nodes": session.search(request.query_params.get("q", "")[:200])})

    def plane(request: Request) -> Response:
        return JSONResponse(session.map())

    async def events(request: Request) -> Response:
        async def stream() -> AsyncIterator[str]:
            seen: tuple[int, str | None] = (-1, None)
            quiet = 0
            with windows.opened(request.query_params.get("window", "")[:80]):
                while not stopping() and not await request.is_disconnected():
                    if (session.version, windows.first) != seen:
                        seen, quiet = (session.version, windows.first), 0
                        yield f"data: {json.dumps({'version': session.version})}\n\n"
                    elif quiet >= 150:
                        quiet = 0
                        yield ": still here\n\n"
                    quiet += 1
                    await asyncio.sleep(0.1)

        return StreamingResponse(stream(), media_type="text/event-stream")

    def act(do: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            values = await _body(request)
            if refusal := windows.refusal(values.get("window")):
                raise HTTPException(409, refusal)
            said = await run_in_threadpool(do, values)
            return JSONResponse({**said, "state": await run_in_threadpool(state_for, values.get("window"))})

        return answer

    def label(values: dict[str, Any]) -> dict[str, Any]:
        return {"said": session.label(_integer(values.get("node")), _text(values.get("label")))}

    def skip(values: dict[str, Any]) -> dict[str, Any]:
        return {"said": session.skip(_integer(values.get("node")))}

    def add_class(values: dict[str, Any]) -> dict[str, Any]:
        return {"said": session.add_class(_text(values.get("name")))}

    def undo(values: dict[str, Any]) -> dict[str, Any]:
        said, about = session.undo()
        return {"said": said, "node": None if about is None else session.node(about)}

    def finish(values: dict[str, Any]) -> dict[str, Any]:
        return {"said": session.finish()}

    def refuse(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, 409 if session.store.read_only else 400)

    def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return JSONResponse({"error": error.detail}, error.status_code)

    shown = {"": page(""), "label.js": page("label.js"), "label.css": sheet, "state": state, "node": node}
    shown |= {"search": search, "map": plane}
    done = {"label": label, "skip": skip, "class": add_class, "undo": undo, "finish": finish}
    routes = [Route(f"/{token}/{path}", serve) for path, serve in shown.items()]
    routes += [Route(f"/{token}/events", events)]
    routes += [Route(f"/{token}/{path}", act(do), methods=["POST"]) for path, do in done.items()]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hosts=(f"{HOST}:{port}", f"localhost:{port}"))],
        exception_handlers={CagatError: refuse, HTTPException: http_error},
    )


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object that a request holds."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "Send JSON, and say so: content-type application/json.")
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > LARGEST_BODY:
            raise HTTPException(413, f"A request may have {LARGEST_BODY} bytes at most.")
    try:
        values = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        raise HTTPException(400, "This is not JSON.") from None
    if not isinstance(values, dict):
        raise HTTPException(400, "Send a JSON object.")
    return values


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise HTTPException(400, "The number of a node is missing.")
    try:
        return int(value)
    except ValueError:
        raise HTTPException(400, "The number of a node must be a whole number.") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise HTTPException(400, "A text is missing.")
    return value


def _resource(name: str) -> str:
    return (files("cagat.labelling") / "page" / name).read_text(encoding="utf-8")


class LabelServer:
    """Serves a session on a port of this machine.

    Args:
        session: The session.
        port: The port; 0 for any that is free.

    Attributes:
        address: Where the page is.
    """

    def __init__(self, session: Session, port: int = 0) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            if sys.platform != "win32":  # There it would let two programs share a port.
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((HOST, port))
            # From here on requests wait for an answer, so that the address can be opened before :meth:`serve`.
            self._socket.listen()
        except (OSError, OverflowError) as error:
            self._socket.close()
            raise ConfigError(f"Port {port} cannot be had ({error}). Leave --port out for any that is free.") from error
        port, token = self._socket.getsockname()[1], secrets.token_urlsafe(16)
        self.address = f"http://{HOST}:{port}/{token}/"
        app = make_app(session, token, port, lambda: self._server.should_exit)
        # Not in a log: whoever knows the token may label.
        config = uvicorn.Config(
            app,
            http="h11",  # It reads no endless address or header; httptools does.
            h11_max_incomplete_event_size=LARGEST_BODY,
            access_log=False,
            log_level="critical",
            server_header=False,
            ws="none",
        )
        self._server = uvicorn.Server(config)

    def serve(self) -> None:
        """Serve until :meth:`stop`, or until somebody presses Ctrl-C."""
        try:
            self._server.run(sockets=[self._socket])
        except KeyboardInterrupt:
            pass
        finally:
            self._socket.close()

    def stop(self) -> None:
        """End :meth:`serve`."""
        self._server.should_exit = True
