"""The metrics of a look, as Prometheus reads them."""

import socket
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from pipeprof.errors import UsageError
from pipeprof.report import local_server, prometheus
from tests.unit.report.test_top import LOOK, RANK, SCREEN


def read(text):
    """{(name, labels): value} of a text of metrics."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def fetched_from(address):
    with urlopen(address) as answer:  # noqa: S310 - this test's own server
        return answer.read().decode()


def metrics_of(content):
    registry, metrics = CollectorRegistry(), prometheus.Metrics()
    registry.register(metrics)
    metrics.content = content
    return read(generate_latest(registry).decode())


CONTENT = LOOK | {"ranks": [RANK | {"rank": 3}]}


def test_every_figure_of_a_look_is_a_metric_in_base_units():
    found = metrics_of(CONTENT)
    rank = ("rank", "3")
    assert found["pipeprof_recording",] == 1
    assert found["pipeprof_steps_per_second", rank] == 74.2
    assert found["pipeprof_step_seconds", rank] == pytest.approx(0.0106)
    assert found["pipeprof_data_wait_ratio", rank] == 0.116
    assert found["pipeprof_train_steps", rank] == 742
    assert found["pipeprof_train_planned_steps", rank] == 10_000
    assert found["pipeprof_train_left_seconds", rank] == pytest.approx(124.77)
    assert found["pipeprof_queue_depth", ("op_type", "BatchOp"), rank, ("stage", "0")] == 8
    assert found["pipeprof_queue_capacity", ("op_type", "MapOp"), rank, ("stage", "1")] == 16
    assert found["pipeprof_host_idle_ratio",] == 0.25
    assert found["pipeprof_job_cpu_cores",] == 1.5
    assert found["pipeprof_job_resident_memory_bytes",] == 3 << 20
    assert found["pipeprof_verdict_info", ("confidence", "low"), ("sentence", "Input-bound.")] == 1


def test_what_is_not_known_is_left_out_and_an_ended_run_says_so():
    found = metrics_of(LOOK | {"state": "complete", "ranks": [], "machine": None, "verdict": None})
    assert found == {("pipeprof_recording",): 0}
    assert metrics_of(None) == {}


def test_before_there_is_a_verdict_none_is_told():
    early = {"training_steps": 5, "training_ns": 1e9, "first_screen": None}
    assert not any(name == "pipeprof_verdict_info" for name, *_ in metrics_of(LOOK | {"ranks": [], "verdict": early}))


def test_foreign_text_stays_a_label():
    queue = {"op_type": 'x"} 1\npipeprof_recording 7\x1b[2J', "depth": 1, "capacity": 2}
    screen = {"first_screen": SCREEN | {"sentence": "a\n# TYPE b\u202e", "confidence": None}}
    found = metrics_of(LOOK | {"ranks": [RANK | {"rank": 0, "queues": [queue]}], "verdict": screen})
    assert found["pipeprof_recording",] == 1
    assert len([name for name, *_ in found if name == "pipeprof_queue_depth"]) == 1
    assert not any(sign in str(found) for sign in ("\\n", "\x1b", "\u202e"))


def test_the_newest_look_is_served_until_the_last():
    fetched, addresses = [], []

    def looks():
        yield CONTENT
        fetched.append(fetched_from(addresses[0]))
        yield LOOK | {"state": "complete", "ranks": []}
        fetched.append(fetched_from(addresses[0]))

    prometheus.serve(looks(), 0, addresses.append)
    assert [read(text)["pipeprof_recording",] for text in fetched] == [1, 0]
    with pytest.raises(OSError, match="refused"):
        fetched_from(addresses[0])


def test_it_answers_as_the_site_does_only_its_own_names_with_the_token(monkeypatch):
    monkeypatch.setenv(local_server.TOKEN, "a-token-of-some-length")
    answers = {}

    def asked(address, headers):
        try:
            with urlopen(Request(address, headers=headers)) as answer:  # noqa: S310 - this test's own server
                return answer.status
        except HTTPError as error:
            with error:
                assert b"pipeprof_recording" not in error.read()  # noqa: PT017 - a refused one says nothing
            return error.code

    def looks():
        yield CONTENT
        bare = address[0].partition("?")[0]
        answers.update({
            "address": asked(address[0], {}), "bearer": asked(bare, {"Authorization": "Bearer a-token-of-some-length"}),
            "none": asked(bare, {}), "wrong": asked(f"{bare}?token=a-token-of-some-lengtH", {}),
            "host": asked(address[0], {"Host": "evil.example"}),
        })  # fmt: skip

    address = []
    prometheus.serve(looks(), 0, address.append)
    assert answers == {"address": 200, "bearer": 200, "none": 403, "wrong": 403, "host": 400}


def test_a_connection_that_says_nothing_holds_nobody_up():
    held = []

    def looks():
        yield CONTENT
        held.extend(socket.create_connection((local_server.HOST, urlsplit(address[0]).port)) for _ in range(20))
        assert "pipeprof_recording" in fetched_from(address[0])

    address = []
    prometheus.serve(looks(), 0, address.append)
    for one in held:
        one.close()


@pytest.mark.parametrize("token", ["short", "with blanks in it it is none", "ä" * 20])
def test_a_token_of_the_users_is_long_and_plain(monkeypatch, token):
    monkeypatch.setenv(local_server.TOKEN, token)
    with pytest.raises(UsageError, match="16 or more"):
        local_server.new_token()


def test_without_one_of_the_users_each_server_has_its_own(monkeypatch):
    monkeypatch.delenv(local_server.TOKEN, raising=False)
    tokens = {local_server.new_token() for _ in range(10)}
    assert len(tokens) == 10
    assert min(map(len, tokens)) >= 32


def test_a_port_that_is_taken_is_one_clear_error():
    with (
        socket.create_server((local_server.HOST, 0)) as taken,
        pytest.raises(UsageError, match="cannot listen on port"),
    ):
        prometheus.serve(iter([]), taken.getsockname()[1], print)


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setattr(prometheus, "find_spec", lambda _name: None)
    with pytest.raises(UsageError, match="needs prometheus-client"):
        prometheus.serve(iter([]), 0, print)
