"""What looks like a secret is not kept; what an ordinary training is given is."""

import json

import pytest
from every import every

from pipeprof.collect.probe import redact
from pipeprof.collect.probe.redact import hidden_values, redacted, redacted_variable, without_secrets

S = "c0ffee-do-not-keep"
SHAPES = [
    "ghp_" + "a1B2" * 9, "gho_" + "a1B2" * 9, "github_pat_" + "a1B2_" * 9, "glpat-" + "a1B2c" * 4, "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE", "hf_" + "aB3d" * 8, "sk-" + "aB3d" * 8, "sk-proj-" + "aB3d-" * 8, "xoxb-1234567890-abcdef",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc_def", "AIza" + "aB3_" * 9, "npm_" + "a1B2" * 9, "pypi-" + "a1B2" * 9,
    "shpat_" + "0a1b" * 8, "dapi" + "0a1b" * 8, "ATATT3xFf" + "aB3_" * 9, "PMAK-" + "0a1b" * 9, "key-" + "0a1b" * 8,
    "123456789:AA" + "aB3" * 11, "M" + "aB3" * 8 + ".aB3_d3." + "aB3" * 10, "tskey-auth-" + "aB3d" * 4, "pul-" + "0a1b" * 10,
    "AGE-SECRET-KEY-1" + "QP0Z" * 14, "glsa_" + "aB3d" * 8, "lin_api_" + "aB3d" * 9, "sbp_" + "0a1b" * 10,
    "xai-" + "aB3d" * 20, "figd_" + "aB3d_" * 8,
]  # fmt: skip
BLOCKS = [
    f"-----BEGIN {kind}-----\nlQOYBGF-{S}\n\n=AbCd\n-----END {kind}-----"
    for kind in (
        "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK", "ED25519 PRIVATE KEY", "X25519 PRIVATE KEY",
    )
]  # fmt: skip
BLOCKS += [
    f"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{S}\n---- END SSH2 ENCRYPTED PRIVATE KEY ----",
    f"PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 1\n{S}",
]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["python", "t.py", "--token", "abc"], ["python", "t.py", "--token", "***"]),
        (["python", "t.py", "--hf_token=abc"], ["python", "t.py", "--hf_token=***"]),
        (["python", "t.py", "--api-key", "abc", "--lr", "0.1"], ["python", "t.py", "--api-key", "***", "--lr", "0.1"]),
        (["env", "MY_PASSWORD=abc", "python"], ["env", "MY_PASSWORD=***", "python"]),
        (["python", "t.py", "--secret", "--lr", "1"], ["python", "t.py", "--secret", "--lr", "1"]),
        (["t", "mysql://me:abc@host/db"], ["t", "mysql://me:***@host/db"]),
        (["t", "--url=https://me:abc@host/x?y=1"], ["t", "--url=https://me:***@host/x?y=1"]),
        (["t", "https://abc@host/x"], ["t", "https://***@host/x"]),
        (["t", "s3://key:abc@bucket/x"], ["t", "s3://key:***@bucket/x"]),
        (["t", "https://h/x?a=1&token=abc&b=2"], ["t", "https://h/x?a=1&token=***&b=2"]),
        (["curl", "-u", "me:abc", "x"], ["curl", "-u", "me:***", "x"]),
        (["curl", "-ume:abc", "--user=you:abc"], ["curl", "-ume:***", "--user=you:***"]),
        (["t", "--key=abc", "--pass", "abc", "-p", "abc"], ["t", "--key=***", "--pass", "***", "-p", "***"]),
        (["mysql", "-pabc"], ["mysql", "-p***"]),
        (["t", '{"password": "abc", "lr": 1}'], ["t", '{"password": "***", "lr": 1}']),
        (["t", '--config={"a":{"api_key":"abc"}}'], ["t", '--config={"a":{"api_key":"***"}}']),
        (["docker", "run", "--env=HF_TOKEN=abc"], ["docker", "run", "--env=HF_TOKEN=***"]),
        (["srun", "-p", "gpu", "python", "t.py", "-p", "abc"], ["srun", "-p", "gpu", "python", "t.py", "-p", "***"]),
        (["bash", "-c", "mkdir -p out; python t.py -p abc"], ["bash", "-c", "mkdir -p out; python t.py -p ***"]),
        (["bash", "-c", "mysql -u root -pabc db"], ["bash", "-c", "mysql -u root -p*** db"]),
        ([], []),
    ],
)
def test_values_that_look_like_secrets_are_hidden_and_nothing_else(command, shown):
    assert without_secrets(command) == shown
    assert without_secrets(shown) == shown


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "-c", f"python t.py --token {S}"],
        ["bash", "-c", f"python t.py --api-key={S} --lr 1"],
        ["bash", "-c", f"python t.py --password '{S} {S}'"],
        ["bash", "-c", f'python t.py --password "{S} {S}'],
        ["bash", "-c", f"cd x; export HF_TOKEN={S}; python t.py"],
        ["bash", "-c", f"curl -u me:{S} https://x"],
        ["python", "-c", f"token = '{S}'"],
        ["python", "-c", f"f(api_key='{S}')"],
        ["t", "--jwt", S],
        ["t", f"--jwt={S}"],
        ["t", "--hf-tok", S],
        ["env", f"OPENAI_TOK={S}", "t"],
        ["curl", "-b", f"session={S}", "https://x"],
        ["curl", "-sb", f"a=1; b={S}", "https://x"],
        ["curl", f"-bsession={S}"],
        ["bash", "-c", f"curl -s -b 'session={S}' https://x"],
        ["t", f"DRIVER=x;UID=me;PWD={S}"],
        ["python", "t.py", "--header", f"Authorization: Bearer {S}"],
        ["python", "t.py", f"--header=Authorization: Token {S}"],
        ["python", "t.py", "-H", f"Cookie: a=b; c={S}"],
        ["python", "t.py", "-H", f"X-Api-Key: {S}"],
        ["python", "t.py", f'\\"password\\": \\"{S}\\"'],
        ["python", "t.py", f"https://h/x?X-Amz-Signature={S}"],
        ["python", "t.py", f"https://me:a@b{S}@h/x"],
        ["python", "t.py", f"postgres://:{S}@host/db"],
        ["python", "t.py", "--accessToken", S],
        ["python", "t.py", "--token", f"-{S}"],
        ["env", f"PGPASSWORD={S}", f"MYSQL_PWD={S}", f"AWS_SECRET_ACCESS_KEY={S}"],
    ],
)
def test_a_secret_inside_a_word_is_hidden_too(command):
    assert S not in " ".join(without_secrets(command))


@every(SHAPES, lambda shape: shape[:8])
def test_known_shapes_are_hidden_wherever_they_stand(shape):
    for words in ([shape], ["--x", shape], [f"--x={shape}"], [f"https://h/{shape}/y"], ["bash", "-c", f"t {shape};u"]):
        assert shape not in " ".join(without_secrets(words))
    assert redacted(f"ValueError: {shape}!") == "ValueError: ***!"


@pytest.mark.parametrize(
    "command",
    [
        ["python", "train.py", "-p", "8080"], ["python", "train.py", "-p", "0.5"], ["python", "t.py", "-p", "out/x"],
        ["python", "t.py", "-p", "config.yaml"], ["python", "t.py", "-p", "fp16"], ["mkdir", "-p", "out"],
        ["docker", "run", "-u", "1000:1000", "-p", "8080:80", "image"], ["srun", "-p", "gpu", "python", "t.py"],
        ["python", "-m", "pytest", "-p", "no:cacheprovider"], ["python", "-u", "train.py"],
        ["curl", "-b", "cookies.txt", "https://x"], ["t", "-b", "size=32"], ["t", "--pin-memory", "1"], ["t", "--tok", "bpe"],
        ["env", "PWD=/home/me", "t"], ["bash", "-c", "cd x; OLDPWD=/home/me t"],
        ["bash", "-c", "mkdir -p out && python t.py -p 8080"], ["t", "--tokenizer", "bert"], ["t", "--max-tokens", "512"],
        ["t", "--pad-token", "<pad>"], ["t", "--author", "bob"], ["t", "--key", "7"], ["t", "--sort-key", "loss"],
        ["t", "--token-file", "/x"], ["t", "--num-key-value-heads", "8"], ["t", "--passes", "3"], ["t", "--use-auth=true"],
        ["t", "--lr=0.1", "--name=a b", "x=y", "a=b=c", "====="], ["t", "ssh://git@github.com/x", "git@github.com:x/y.git"],
        ["t", "--url=https://host:8080/x@v1"], ["python", "-c", "import mindspore as ms; print(ms.__version__)"],
        ["t", "sk-learn-contrib-long-name"], ["t", "--keys", "image", "label"], ["t", "std::vector", "a:b"],
    ],
)  # fmt: skip
def test_what_a_training_is_given_is_kept(command):
    assert without_secrets(command) == command


def test_messages_and_lines_of_code_are_kept_without_secrets():
    assert (
        redacted("Command '['curl', '-u', 'me:abc', '-p', 'abc']'") == "Command '['curl', '-u', 'me:***', '-p', '***']'"
    )
    assert redacted("ConnectionError: mysql://me:abc@host") == "ConnectionError: mysql://me:***@host"
    for line in ("sorted(x, key=len)", "usage: t [-p PORT]", "loss = net(images, labels)", "KeyError: 'image'"):
        assert redacted(line) == line


def test_values_are_looked_for_again_when_they_were_hidden_once():
    known = hidden_values(
        ["t", "--token=abcdefgh", "https://me:passw0rd@h/x", "-p", "1"], {"HF_TOKEN": "qwertyui", "X": "y"}
    )
    assert sorted(known) == ["abcdefgh", "passw0rd", "qwertyui"]


@pytest.mark.parametrize("name", ["otp", "totp", "pin", "jwt"])
def test_numbers_that_are_a_password_by_their_name_are_hidden(name):
    assert without_secrets(["t", f"--{name}", "1234"]) == ["t", f"--{name}", "***"]
    assert without_secrets(["t", f"--{name}=1234"]) == ["t", f"--{name}=***"]
    assert redacted_variable(name.upper(), "1234") == "***"


def test_the_folder_that_a_shell_is_in_is_no_password():
    """Tracebacks would read `File "***/crash.py"`."""
    for name in ("PWD", "OLDPWD"):
        assert redacted_variable(name, "/home/me/project") == "/home/me/project"
    assert hidden_values(["t"], {"PWD": "/home/me/project", "OLDPWD": "/home/me"}) == []


def test_a_variable_is_hidden_by_its_name_or_for_what_it_holds():
    assert redacted_variable("MY_TOKEN", "x") == "***"
    assert redacted_variable("GLOG_v", "1") == "1"
    assert redacted_variable("X", "https://me:abc@h") == "https://me:***@h"


def test_further_patterns_hide_what_they_match(monkeypatch):
    monkeypatch.setenv(redact.VARIABLE, "customer-\\d+\n[broken\nx*\na{9999999999}")
    assert without_secrets(["t", "--out=customer-42/x", "a[broken"]) == ["t", "--out=***/x", "a***"]
    assert redacted("no such file: customer-7") == "no such file: ***"
    assert without_secrets(["xxx"]) == ["xxx"]


def test_the_probe_reads_it_on_its_own():
    """It is loaded by path, in Pythons that have no pipeprof."""
    assert "pipeprof" not in {name.split(".")[0] for name in vars(redact) if not name.startswith("_")} - {"VARIABLE"}
    json.dumps(without_secrets(["a" * 100_000, "a=" * 50_000, "'\"" * 20_000, "-p " * 20_000]))


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split("\n")[0].strip("- "))
@pytest.mark.parametrize("ends", ["\n", "\\n"])
def test_private_keys_are_hidden_as_a_whole_however_they_are_cut(block, ends):
    text = block.replace("\n", ends)
    for shown in (text, text[: text.index(S) + len(S)], f"key is {text} and more"):
        assert S not in redacted(shown)
        assert S not in "".join(without_secrets(["python", "train.py", shown]))
        assert S not in redacted_variable("SOME_TEXT", shown)


def test_what_is_no_private_key_is_kept():
    for text in (
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\nabc\n-----END PGP PUBLIC KEY BLOCK-----",
        "-----BEGIN CERTIFICATE-----\nabc",
        "NetworkWithLossAndGradients.blocks.attention_projection_with_bias_0",
        "MobileNetV2WithLossCells12.layer1.projection_after_everything_else",
        "key-value", "pat-a", "dapi", "v1.0-beta", "EAAA",
    ):  # fmt: skip
        assert redacted(text) == text
