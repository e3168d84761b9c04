"""Looks at a run that is recorded, as metrics that Prometheus can fetch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from pipeprof import escape
from pipeprof.errors import UsageError
from pipeprof.report import local_server, status

INSTALL = "pip install 'pipeprof[prometheus]'"
_PACE = (
    ("steps_per_second", "steps_per_second", 1.0, "Training steps per second, lately."),
    ("median_ns", "step_seconds", 1e-9, "Median duration of the latest training steps."),
    ("data_wait_share", "data_wait_ratio", 1.0, "Share of the latest steps in which the training waited for data."),
    ("done", "train_steps", 1.0, "Steps that this Model.train has done."),
    ("planned", "train_planned_steps", 1.0, "Steps that this Model.train is to do."),
    ("left_ns", "train_left_seconds", 1e-9, "Time for the rest of this Model.train at the latest pace."),
)
_MACHINE = (
    ("idle_share", "host_idle_ratio", "Share of the machine's cores that is idle."),
    ("job_cores", "job_cpu_cores", "Cores that the processes of the training use."),
    ("rss_bytes", "job_resident_memory_bytes", "Resident memory of the processes of the training."),
    ("processes", "job_processes", "Processes of the training."),
)


WSGIApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Metrics:
    """The newest look as metrics of prometheus_client: `content` is put in, `collect` is asked by the client."""

    def __init__(self) -> None:
        self.content: dict[str, Any] | None = None

    def collect(self) -> Iterator[Any]:
        """One family of metrics after the other; what is not known is left out."""
        content = self.content
        if content is None:
            return
        yield _family("recording", "1 while the run is recorded.", [([], float(content["state"] == status.RECORDING))])
        for name, metric, factor, words in _PACE:
            rows = [(row, (row["pace"] or {}).get(name)) for row in content["ranks"]]
            samples = [([_rank(row)], value * factor) for row, value in rows if value is not None]
            yield _family(metric, words, samples, ["rank"])
        for name, words in (("depth", "Batches in a queue."), ("capacity", "Batches that fit into a queue.")):
            yield _family(f"queue_{name}", words, _queues(content["ranks"], name), ["rank", "stage", "op_type"])
        for name, metric, words in _MACHINE:
            value = (content["machine"] or {}).get(name)
            yield _family(metric, words, [] if value is None else [([], value)])
        screen = (content["verdict"] or {}).get("first_screen")
        labels = [] if screen is None else [escape.line(screen[name] or "") for name in ("sentence", "confidence")]
        samples = [(labels, 1.0)] if screen is not None else []
        yield _family("verdict_info", "The verdict so far, in its labels.", samples, ["sentence", "confidence"])


def _family(name: str, words: str, values: list[tuple[list[str], float]], labels: list[str] | None = None) -> Any:
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - an extra

    made = GaugeMetricFamily(f"pipeprof_{name}", words, labels=labels or [])
    for label_values, value in values:
        made.add_metric(label_values, value)
    return made


def _queues(ranks: list[dict[str, Any]], name: str) -> list[tuple[list[str], float]]:
    """`stage` counts from the training loop (0) towards the sources."""
    return [
        ([_rank(row), str(stage), escape.line(queue["op_type"])], queue[name])
        for row in ranks
        for stage, queue in enumerate(row["queues"])
    ]


def _rank(row: dict[str, Any]) -> str:
    return str(row["rank"])


def serve(looks: Iterator[dict[str, Any]], port: int, tell: Callable[[str], None]) -> None:
    """Answer http://127.0.0.1:PORT/metrics with the newest look until the last one; `tell` gets the address.

    A request needs the token, as `pipeprof serve` has it, in the address or as `Authorization: Bearer`. Raises
    UsageError when the extra is missing or the port is taken.
    """
    if not find_spec("prometheus_client"):
        raise UsageError("`--listen` needs prometheus-client", INSTALL)
    from prometheus_client import CollectorRegistry, make_wsgi_app  # noqa: PLC0415 - an extra

    metrics, registry, token = Metrics(), CollectorRegistry(), local_server.new_token()
    try:
        server = make_server(local_server.HOST, port, _guarded(make_wsgi_app(registry), token), _Server, _Quiet)
    except OSError as error:
        raise UsageError(f"cannot listen on port {port}: {error.strerror}", "give another --listen, or 0") from error
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        metrics.content = next(looks, None)  # nobody is told an address that has nothing to say yet
        registry.register(metrics)
        tell(f"http://{local_server.HOST}:{server.server_port}/metrics?token={token}")
        for metrics.content in looks:
            pass
    except KeyboardInterrupt:
        return
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingMixIn, WSGIServer):
    """One that a connection which says nothing does not hold up."""

    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    """Answers, and prints nothing of it."""

    def log_message(self, *_words: object) -> None:
        """Nothing."""


def _guarded(answer: WSGIApplication, token: str) -> WSGIApplication:
    """The same for who may ask."""

    def guarded(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        in_address = parse_qs(environ.get("QUERY_STRING", "")).get("token", [""])[0]
        given = in_address or environ.get("HTTP_AUTHORIZATION", "").removeprefix("Bearer ")
        if not local_server.is_here(environ.get("HTTP_HOST", "")):
            status, said = "400 Bad Request", local_server.WRONG_HOST
        elif not local_server.is_token(given, token):
            status, said = "403 Forbidden", local_server.WRONG_TOKEN
        else:
            return answer(environ, start)
        start(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [said.encode()]

    return guarded
