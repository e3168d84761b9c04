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

CONTENT = LOOK | {"ranks": [RANK | {"rank": 3}]}
OWN = "a-token-of-some-length"


def read(text):
    """{(name, labels): value} of a text of metrics."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def metrics_of(content):
    registry, metrics = CollectorRegistry(), prometheus.Metrics()
    registry.register(metrics)
    metrics.content = content
    return read(generate_latest(registry).decode())


def test_every_figure_of_a_look_is_a_metric_in_base_units():
    rank = ("rank", "3")
    expected = {
        ("recording",): 1, ("steps_per_second", rank): 74.2, ("step_seconds", rank): 0.0106,
        ("data_wait_ratio", rank): 0.116, ("train_steps", rank): 742, ("train_planned_steps", rank): 10_000,
        ("train_left_seconds", rank): 124.77, ("queue_depth", ("op_type", "BatchOp"), rank, ("stage", "0")): 8,
        ("queue_capacity", ("op_type", "MapOp"), rank, ("stage", "1")): 16, ("host_idle_ratio",): 0.25,
        ("job_cpu_cores",): 1.5, ("job_resident_memory_bytes",): 3 << 20,
        ("verdict_info", ("confidence", "low"), ("sentence", "Input-bound.")): 1,
    }  # fmt: skip
    found = {(name.removeprefix("pipeprof_"), *labels): value for (name, *labels), value in metrics_of(CONTENT).items()}
    assert {key: found.get(key) for key in expected} == pytest.approx(expected)


def test_what_is_not_known_is_left_out_and_an_ended_run_says_so():
    found = metrics_of(LOOK | {"state": "complete", "ranks": [], "machine": None, "verdict": None})
    assert found == {("pipeprof_recording",): 0}
    assert metrics_of(None) == {}
    early = {"training_steps": 5, "training_ns": 1e9, "first_screen": None}  # before there is a verdict
    assert not any(name == "pipeprof_verdict_info" for name, *_ in metrics_of(LOOK | {"ranks": [], "verdict": early}))


def test_foreign_text_stays_a_label():
    queue = {"op_type": 'x"} 1\npipeprof_recording 7\x1b[2J', "depth": 1, "capacity": 2}
    screen = {"first_screen": SCREEN | {"sentence": "a\n# TYPE b\u202e", "confidence": None}}
    found = metrics_of(LOOK | {"ranks": [RANK | {"rank": 0, "queues": [queue]}], "verdict": screen})
    assert found["pipeprof_recording",] == 1
    assert len([name for name, *_ in found if name == "pipeprof_queue_depth"]) == 1
    assert not any(sign in str(found) for sign in ("\\n", "\x1b", "\u202e"))


def served(*looks):
    """Each look is served until what comes with it was done with the address."""
    addresses = []

    def each():
        for content, act in looks:
            yield content
            act(addresses[0])

    prometheus.serve(each(), 0, addresses.append)
    return addresses[0]


def fetched_from(address):
    with urlopen(address) as answer:  # noqa: S310 - this test's own server
        return answer.read().decode()


def test_the_newest_look_is_served_until_the_last():
    fetched = []
    looks = (CONTENT, LOOK | {"state": "complete", "ranks": []})
    address = served(*((look, lambda address: fetched.append(fetched_from(address))) for look in looks))
    assert [read(text)["pipeprof_recording",] for text in fetched] == [1, 0]
    with pytest.raises(OSError, match="refused"):
        fetched_from(address)


def test_it_answers_as_the_site_does_only_its_own_names_with_the_token(monkeypatch):
    monkeypatch.setenv(local_server.TOKEN, OWN)
    answers = {}

    def asked(address, headers):
        try:
            with urlopen(Request(address, headers=headers)) as answer:  # noqa: S310 - this test's own server
                return answer.status
        except HTTPError as error:
            with error:
                assert b"pipeprof_recording" not in error.read()  # noqa: PT017 - a refused one says nothing
            return error.code

    def act(address):
        bare = address.partition("?")[0]
        answers.update({
            "address": asked(address, {}), "bearer": asked(bare, {"Authorization": f"Bearer {OWN}"}),
            "none": asked(bare, {}), "wrong": asked(f"{bare}?token={OWN[:-1]}H", {}),
            "host": asked(address, {"Host": "evil.example"}),
        })  # fmt: skip

    served((CONTENT, act))
    assert answers == {"address": 200, "bearer": 200, "none": 403, "wrong": 403, "host": 400}


def test_a_connection_that_says_nothing_holds_nobody_up():
    held = []

    def act(address):
        held.extend(socket.create_connection((local_server.HOST, urlsplit(address).port)) for _ in range(20))
        assert "pipeprof_recording" in fetched_from(address)

    served((CONTENT, act))
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


def test_a_port_that_is_taken_and_a_missing_extra_are_one_clear_error(monkeypatch):
    with socket.create_server((local_server.HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match="cannot listen on port"):
            prometheus.serve(iter([]), port, print)
    monkeypatch.setattr(prometheus, "find_spec", lambda _name: None)
    with pytest.raises(UsageError, match="needs prometheus-client"):
        prometheus.serve(iter([]), 0, print)
