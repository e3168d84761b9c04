"""Google's and Azure's storage: runs and baselines against local servers of their kinds, and what can go wrong."""

import pytest
from baseline_made import made
from cloud_servers import AZURITE, KEY, azure_server, google_server
from copies import files_of
from in_process import refused, said
from object_server import faulty_proxy
from pyarrow import fs

from pipeprof.errors import RunError, UsageError
from pipeprof.record import baseline, object_account, object_runs, objects
from pipeprof.record.run import MANIFEST, load
from pipeprof.record.run_objects import fetch, push

STEP = "SELECT count(*) AS steps FROM step"


@pytest.fixture(scope="module", params=[google_server, *([azure_server] if AZURITE else [])])
def cloud(request, tmp_path_factory):
    with request.param(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(autouse=True)
def own(monkeypatch, tmp_path):
    """A cache and a home of the test's own, no accounts, and little patience."""
    for name in (object_account.CONNECTION, object_account.ACCOUNT, object_account.KEY, object_account.SAS):
        monkeypatch.delenv(name, raising=False)
    for name in (object_account.KEY_FILE, "GOOGLE_GCLOUD_ADC_PATH_OVERRIDE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(objects, "_GIVEN_UP_S", 1)
    monkeypatch.setattr(object_runs, "_PAUSE_S", 0.0)


@pytest.fixture
def account(cloud, monkeypatch):
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("account")
def test_a_run_comes_back_byte_for_byte_and_is_pushed_once(cloud, recorded):
    parts = len(load(recorded).manifest.parts)
    found = [push(load(recorded), cloud.url("back/RUN"))[1:] for _ in range(2)]
    assert found == [(parts, 0), (0, parts)]
    assert files_of(fetch(cloud.url("back/RUN"))) == files_of(recorded)


@pytest.mark.usefixtures("account")
def test_the_verbs_that_take_urls_answer(cloud, recorded):
    url = cloud.url("verbs/RUN")
    said("push", recorded, url)
    assert said("sql", url, STEP, "--format", "csv") == said("sql", recorded, STEP, "--format", "csv")
    assert said("report", url).splitlines()[0] == said("report", recorded).splitlines()[0]
    assert "is as it was written" in said("verify", url)
    for verb in ("runs", "fleet", "history"):
        assert f"{'1 measurement' if verb == 'history' else '1 run in'}" in said(verb, cloud.url("verbs"))
    assert "both sides hold the run" in refused("compare", recorded, url).message


@pytest.mark.usefixtures("account")
def test_baselines_are_written_listed_read_and_removed(cloud):
    root = cloud.url("baselines")
    machine = baseline.save(made("j0"), root, "demo").document.machine
    baseline.save(made("j1", first=12e6, created_at="2026-11-22T10:00:00+00:00"), root, "demo", append=True)
    assert baseline.names(root) == [("demo", machine)]
    assert baseline.load_named(root, "demo", machine).jobs == {"j0", "j1"}
    assert len(baseline.read_history(root, "demo", machine)) == 2
    assert "1 baseline in" in said("baseline", "list", "--root", root)
    assert baseline.remove(root, "demo") == [("demo", machine)]
    assert baseline.names(root) == []


VERBS = [
    ("push", "RUN", "URL"), ("report", "URL"), ("sql", "URL", STEP), ("verify", "URL"), ("compare", "RUN", "URL/a/b"),
    ("runs", "URL"), ("fleet", "URL"), ("history", "URL"), ("baseline", "list", "--root", "URL"),
    ("baseline", "write", "RUN", "--workload", "w", "--root", "URL"),
]  # fmt: skip


def filled(words, recorded, cloud, path):
    places = {"URL": cloud.url(path), "URL/a/b": cloud.url(f"{path}/a/b"), "RUN": recorded}
    return [places.get(word, word) for word in words]


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_bucket_that_is_not_there_is_named_as_what_it_is(cloud, recorded, words):
    error = refused(*filled(words, recorded, cloud, "/nosuch/runs"))
    kind = "bucket" if cloud.scheme == "gs" else "container"
    assert f"there is no such {kind}: " in error.message
    assert "nosuch" in error.message
    assert f"the name of the {kind}" in error.hint
    assert error.exit_code == 3


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("words", [words for words in VERBS if "push" not in words and "write" not in words])
def test_where_nothing_lies_that_is_said(cloud, recorded, words):
    error = refused(*filled(words, recorded, cloud, "nothing"))
    assert cloud.shown("nothing") in error.message
    assert "such" not in error.message
    assert error.exit_code == 3


@pytest.mark.usefixtures("account")
def test_half_of_an_upload_is_no_run(cloud, recorded):
    url = cloud.url("half/RUN")
    push(load(recorded), url)
    cloud.system().delete_file(f"bucket/half/RUN/{MANIFEST}")
    with pytest.raises(RunError, match=f"no whole run at `{cloud.shown('half/RUN')}`"):
        fetch(url)
    assert push(load(recorded), url).written == 0
    assert files_of(fetch(url)) == files_of(recorded)


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("fault", ["500", "cut"])
def test_a_storage_that_fails_now_and_then_loses_nothing(cloud, recorded, fault, monkeypatch):
    push(load(recorded), cloud.url("faults/RUN"))
    with faulty_proxy(cloud) as proxy:
        address = f"127.0.0.1:{proxy.server_port}"
        for name, value in cloud.environment(address).items():
            monkeypatch.setenv(name, value)
        url = cloud.url("faults/RUN", address)
        proxy.faults = [fault]
        try:
            copy = fetch(url)
        except RunError:  # where the client did not ask again by itself
            copy = fetch(url)
        assert proxy.seen.count(fault) == 1
    assert files_of(copy) == files_of(recorded)


def test_what_google_forbids_is_named_with_its_login(tmp_path):
    with google_server(tmp_path) as google, faulty_proxy(google) as proxy:
        proxy.of, proxy.faults = "", ["403"] * 20
        error = refused("runs", google.url("some", f"127.0.0.1:{proxy.server_port}"))
    assert "it is forbidden" in error.message
    assert object_account.KEY_FILE in error.hint


@pytest.mark.usefixtures("account")
def test_a_server_that_is_gone_is_one_clear_error(cloud, monkeypatch):
    for name, value in cloud.environment("127.0.0.1:9").items():
        monkeypatch.setenv(name, value)
    error = refused("report", cloud.url("some/RUN", "127.0.0.1:9"))
    assert "Could not connect to server" in error.message
    assert "error_info" not in error.message
    assert "credentials in the environment" in error.hint


@pytest.mark.skipif(AZURITE is None, reason="needs azurite-blob in PATH: npm install -g azurite")
def test_a_wrong_key_and_a_wrong_token_are_forbidden(tmp_path, monkeypatch):
    with azure_server(tmp_path) as azure:
        (string,) = azure.environment(key="AAAA" + KEY[4:]).values()
        token = string.replace("AccountKey=", "SharedAccessSignature=sv=2024-11-04&sp=rl&sig=")
        for wrong in (string, token):
            monkeypatch.setenv(object_account.CONNECTION, wrong)
            error = refused("runs", azure.url("some"))
            assert "it is forbidden" in error.message
            assert "sig=" not in error.message
            assert object_account.KEY in error.hint


@pytest.mark.parametrize(("name", "value", "message"), [
    (object_account.ACCOUNT, "", "AZURE_STORAGE_ACCOUNT is not set"),
    (object_account.KEY, "hello!", "the key in AZURE_STORAGE_KEY is no key of Azure"),
    (object_account.CONNECTION, "hello", "AZURE_STORAGE_CONNECTION_STRING names no account"),
    (object_account.CONNECTION, "AccountName=team;AccountKey=x", "the key in AZURE_STORAGE_CONNECTION_STRING is no key"),
    (object_account.CONNECTION, "AccountName=a;BlobEndpoint=https://files.example", "the BlobEndpoint `files.example`"),
    # Azure's client ends the process that asks with a login over http
    (object_account.CONNECTION, "AccountName=a;BlobEndpoint=http://127.0.0.1:9/a", "no login for the Azure account `a`"),
])  # fmt: skip
def test_an_account_of_azure_that_cannot_be_right_is_refused_before_it_is_asked(monkeypatch, name, value, message):
    monkeypatch.setenv(object_account.ACCOUNT, "team")
    monkeypatch.setenv(name, value)
    error = refused("runs", "az://bucket/runs")
    assert message in error.message
    assert "hello" not in error.message
    assert "AZURE_STORAGE_" in error.message + error.hint
    assert error.exit_code == 2


@pytest.mark.parametrize(("environment", "expected"), [
    ({"ACCOUNT": "team", "KEY": "Zm9v"}, fs.AzureFileSystem("team", account_key="Zm9v")),
    ({"ACCOUNT": "other", "CONNECTION_STRING": "AccountName=team;AccountKey=Zm9v;EndpointSuffix=core.chinacloudapi.cn"},
     fs.AzureFileSystem("team", account_key="Zm9v", blob_storage_authority=".blob.core.chinacloudapi.cn",
                        dfs_storage_authority=".dfs.core.chinacloudapi.cn")),
    ({"CONNECTION_STRING": "BlobEndpoint=https://team.blob.core.windows.net/;AccountKey=Zm9v"},
     fs.AzureFileSystem("team", account_key="Zm9v")),
])  # fmt: skip
def test_the_account_of_azure_comes_from_the_environment(monkeypatch, environment, expected):
    for name, value in environment.items():
        monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
    place = objects.Objects.at("az://bucket/runs/a%20b")
    assert (place.system, place.prefix) == (expected, "bucket/runs/a b")


def test_a_url_of_another_kind_for_azure_is_said():
    for url in ("abfs://bucket/runs", "abfss://bucket@team.dfs.core.windows.net/runs"):
        error = refused("runs", url)
        assert "az://container/prefix" in error.hint


def test_google_without_a_login_is_refused_at_once(monkeypatch):
    def unknown(*_words):
        raise OSError("Name or service not known")

    monkeypatch.setattr(object_account.socket, "getaddrinfo", unknown)
    error = refused("report", "gs://bucket/runs/RUN")
    assert isinstance(error, UsageError)
    assert "no login for Google Cloud" in error.message
    assert "gcloud auth application-default login" in error.hint


def test_a_key_file_of_google_that_is_none_is_named(monkeypatch, tmp_path):
    tmp_path.joinpath("key.json").write_text("{")
    for name in ("key.json", "none.json"):
        monkeypatch.setenv(object_account.KEY_FILE, str(tmp_path / name))
        error = refused("report", "gs://bucket/runs/RUN")
        assert "no login: Cannot open credentials file" in error.message
        assert str(tmp_path / name) in error.message
        assert object_account.KEY_FILE in error.hint


def test_a_user_in_a_url_is_refused_but_for_nobody():
    assert "may not hold a user" in refused("runs", "gs://me:word@bucket/runs").message
    assert not objects.names_user("gs://anonymous@bucket/runs")
