"""What must not be kept: passwords, tokens and keys in commands, variables, addresses and messages become `***`.

The rules are in docs/secrets.md. `PIPEPROF_REDACT` holds further patterns, one regular expression in a line: every
process of the job sees it, so that none of them writes what matches.
"""

from __future__ import annotations

import bisect
import os
import re

LEFT_OUT = "***"
VARIABLE = "PIPEPROF_REDACT"
LEAST_KNOWN = 6  # signs of a value that is looked for in messages: shorter ones occur by chance
MOST_DIGITS = 5  # of a number that is no password: a port has five

# Words of a name, in lower case: `HF_TOKEN` and `hfToken` have two.
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ALWAYS = (
    "password", "passwords", "passwd", "passwort", "passphrase", "passcode", "pwd", "secret", "secrets", "apikey",
    "accesskey", "secretkey", "privatekey", "credential", "credentials", "creds", "authorization", "bearer", "cookie",
    "jwt",
)  # fmt: skip
_KEYS_OF = frozenset((
    "access", "account", "admin", "aes", "anthropic", "api", "auth", "aws", "azure", "client", "comet", "deploy",
    "encryption", "gcp", "google", "hf", "hmac", "license", "master", "neptune", "openai", "private", "rsa", "secret",
    "service", "shared", "signing", "ssh", "storage", "subscription", "wandb",
))  # fmt: skip
_PASSES_OF = frozenset((
    "admin", "db", "ftp", "http", "login", "mail", "my", "mysql", "proxy", "redis", "root", "smtp", "ssh", "user",
))  # fmt: skip
# Tokens of a text, which a training has options for: `--pad-token`.
_TOKENS_OF_TEXT = frozenset((
    "audio", "bos", "cls", "end", "eos", "image", "mask", "new", "next", "pad", "per", "prompt", "sep", "special",
    "start", "stop", "unk", "video",
))  # fmt: skip
# What an option says about a secret without holding it: `--token-file`, `--password-length`.
_ABOUT = frozenset((
    "count", "dim", "dir", "directory", "dropout", "file", "filename", "folder", "id", "ids", "index", "len", "length",
    "level", "limit", "list", "method", "mode", "name", "names", "num", "number", "path", "prob", "rate", "ratio",
    "size", "style", "ttl", "type", "url", "weight",
))  # fmt: skip
_SAYS_NOTHING = frozenset(("", "true", "false", "none", "null", "yes", "no", "on", "off", LEFT_OUT))

# `-p` is no password of these, and always one of those.
_PLAIN_P = frozenset((
    "cp", "docker", "git", "install", "kubectl", "mkdir", "nc", "nvprof", "patch", "perf", "pgrep", "podman", "ps",
    "psql", "pytest", "rsync", "salloc", "sbatch", "scp", "sftp", "srun", "ssh", "strace", "tar", "taskset", "time",
    "unzip",
))  # fmt: skip
_PASSWORD_P = frozenset((
    "7z", "mariadb", "mongo", "mongodump", "mongosh", "mysql", "mysqladmin", "mysqldump", "sshpass",
))  # fmt: skip
_PLAIN_U = frozenset(("chown", "docker", "podman", "sudo"))
_COOKIE_B = frozenset(("curl",))  # what stands behind `-b` is a cookie, or a file of cookies, which has no `=`
_B = re.compile("-?[A-Za-z]{0,8}b")
_BY_LAST_WORD = {
    "auth": "always", "oauth": "always", "otp": "short", "totp": "short", "pin": "short", "pat": "random",
    "dbpass": "mostly", "rootpass": "mostly", "sshpass": "mostly", "userpass": "mostly",
}  # fmt: skip
_FOLDERS = frozenset(("PWD", "OLDPWD"))  # variables of every shell; databases call a password so, too
_ORDINARY = re.compile(
    r"[-+]?[\d.]+(?:[eE][-+]?\d+)?|(?=.*\d)[\d:.,x-]+|.*/.*|[.~].*|[\w-]+\.[A-Za-z]\w{0,5}|(?:bf|fp|float|bfloat|int|uint)\d+|O\d|"
    r"amp|auto|train|val|valid|test|eval|dev",
    re.DOTALL,
)
_RANDOM = re.compile(r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[\w+/=.~-]{16,}", re.ASCII)
_USERS = frozenset(("u", "user", "proxy-user", "userpwd"))

_OPTION = re.compile(r"--?([A-Za-z][\w.-]*)", re.ASCII)
_ASSIGNED = re.compile(r"([\w.-]{1,200})=", re.ASCII)
_NAME = re.compile(
    r"(?<![\w.-])(?<!//)-{0,2}(\$?(?:env:)?[A-Za-z_][\w.-]{0,79})(\\?[\"']?\]?\s{0,4}(?:=>|:=|[=:])\s{0,4})", re.ASCII
)
_OPTION_INSIDE = re.compile(r"(?<![\w-])--?([A-Za-z][\w.-]{0,79})([\"']?(?:\s{0,4},\s{0,4}|\s{1,4}))", re.ASCII)
_GLUED = re.compile(r"(?<![\w-])-p(?=[^\s\"'])")
_SCHEME = re.compile(r"(?:Bearer|Basic|Digest|Token)\s+", re.IGNORECASE)
_VALUE = re.compile(
    r"""\\"(?:(?!\\").)*(?:\\"|$)|"(?:\\.|[^"\\])*(?:"|$)|'(?:\\.|[^'\\])*(?:'|$)|(?:[^\s"',;&|()\[\]{}]|,(?!\s))+""",
    re.DOTALL,
)
_HEADER = re.compile(r"((?:authorization|cookie|x-[\w-]*(?:key|token))\s*:(?!\s*\*\*\*)\s*)[^\r\n\"']+", re.IGNORECASE)
_BEARER = re.compile(r"\b(Bearer|Basic)(\s+)(?=\S*\d)[\w.~+/=-]{8,}", re.ASCII)
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,31}://)([^\s/?#\"'<>]{1,4096})@")
_SIGNED = re.compile(
    r"([?&;](?:sig|signature|x-amz-signature|x-amz-security-token|code|key)=)[^&#\s\"']+", re.IGNORECASE
)
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"gh[oprsu]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|gl[a-z]{2,6}-[\w-]{16,}|(?:AKIA|ASIA)[0-9A-Z]{16}|hf_[A-Za-z0-9]{16,}|"
    r"(?:sk|pk|rk)[-_](?=[\w-]*\d)[\w-]{16,}|xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}|eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?|"
    r"AIza[\w-]{30,}|ya29\.[\w-]{16,}|npm_[A-Za-z0-9]{16,}|pypi-[\w-]{16,}|dckr_pat_[\w-]{16,}|SG\.[\w-]{16,}\.[\w-]{16,}|"
    r"gsk_[A-Za-z0-9]{16,}|nvapi-[\w-]{16,}|r8_[A-Za-z0-9]{16,}|hvs\.[\w-]{16,}|dop_v1_[0-9a-f]{16,}|"
    r"ABSK[\w+/=]{40,}|AGE-SECRET-KEY-1[0-9A-Z]{16,}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{16,}|sbp_[0-9a-f]{16,}|lin_api_\w{16,}|"
    r"ntn_\w{16,}|dapi[0-9a-f]{32}|ATATT[\w=-]{16,}|pat-(?:na|eu)\d-[\w-]{16,}|PMAK-[\w-]{16,}|key-[0-9a-f]{32}|"
    r"\d{8,10}:AA[\w-]{33}|[MNO](?=\w*\d)[\w-]{23,26}\.[\w-]{6}\.(?=[\w-]*\d)[\w-]{27,}|sq0[a-z]{3}-[\w-]{16,}|EAAA[\w-]{56,}|tskey-[a-z]+-[\w-]{8,}|"
    r"wandb_v\d_\w{16,}|xai-[\w-]{16,}|figd_[\w-]{16,}|pul-[0-9a-f]{40}|rubygems_[0-9a-f]{16,}|glsa_\w{16,}|CCIPAT_\w{16,}|v1\.0-[0-9a-f]{24}-[0-9a-f]{64,}|"
    r"-{4,5} ?BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}(?:(?!---- ?END).)*"
    r"(?:-{4,5} ?END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}|$)|PuTTY-User-Key-File-\d:.*|"
    r"(?<=hooks\.slack\.com/services/)[\w/]+|(?<=/api/webhooks/)\d+/[\w-]+"
    r")",
    re.ASCII | re.DOTALL,
)
_compiled = {}  # type: dict[str, list[re.Pattern[str]]]


def without_secrets(command):
    # type: (...) -> list[str]
    """The words of a command, with `***` for the values that look like secrets."""
    shown, program, waiting = [], "", ""
    for word in command:
        shown_word = None
        if waiting and not word.startswith("--"):
            shown_word = _value(waiting, word, program)
        waiting = ""
        if shown_word is None:
            shown_word, waiting = _word(word, program)
        named = _program_of(word)
        program = program if named is None else named
        shown.append(_further(shown_word))
    return shown


def redacted(text):
    # type: (str) -> str
    """A message or a line of code, with `***` for what looks like a secret in it."""
    return str(_further(_inside(text, is_code=True)))


def redacted_variable(name, value):
    # type: (str, str) -> str
    """The value of an environment variable, or `***`."""
    return LEFT_OUT if is_secret(name) and not _is_harmless(value) else redacted(value)


def is_secret(name):
    # type: (str) -> bool
    """Whether a variable or an option of this name holds a secret, whatever its value is."""
    return _kind(name) in ("always", "short")


def hidden_values(command, environment):
    """What is hidden in a command and in variables, longest first: to be looked for elsewhere."""
    words = list(command)
    hidden = set()
    for word, shown in zip(words, without_secrets(words)):
        head, mark, tail = shown.partition(LEFT_OUT)
        if mark and LEFT_OUT not in tail and word.startswith(head) and word.endswith(tail):
            hidden.add(word[len(head) : len(word) - len(tail)])
    hidden.update(value for name, value in environment.items() if is_secret(name))
    return sorted((value for value in hidden if len(value) >= LEAST_KNOWN and not _is_harmless(value)), key=len)[::-1]


def _kind(name):
    """`always`, `mostly` (but for small numbers), `random` (what looks random alone), or nothing.

    `short`: always, but in code as `random`. `no_path`: a password, unless it is an absolute path.
    """
    if name in _FOLDERS:
        return "no_path"
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words or words[-1] in _ABOUT:
        return ""
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if any(word.endswith(_ALWAYS) for word in words):
        return "always"
    if last == "tok":
        return "always" if before in _KEYS_OF else ""
    if last.endswith("token"):
        return "" if before in _TOKENS_OF_TEXT else "always"
    return _kind_of_last(last, before)


def _kind_of_last(last, before):
    """The kind of a name by its last word and the one before it."""
    if last == "key":
        return "always" if before in _KEYS_OF else "random" if before else "mostly"
    if last in ("pass", "pw"):
        return "mostly" if not before or before in _PASSES_OF else ""
    return _BY_LAST_WORD.get(last, "")


def _hides(kind, value):
    """Whether a value goes for a kind of name."""
    if not kind or _is_harmless(value):
        return False
    if kind == "random":
        return _RANDOM.fullmatch(value) is not None
    if kind == "no_path":
        return not value.startswith("/")
    if kind == "cookie":
        return "=" in value
    return kind in ("always", "short") or not (value.isdigit() and len(value) <= MOST_DIGITS)


def _is_harmless(value):
    return value.strip("\"'").lower() in _SAYS_NOTHING


def _word(word, program):
    """A word as it is shown, and what kind of value the next one is."""
    if program in _COOKIE_B and word.startswith("-") and not word.startswith("--"):
        if _B.fullmatch(word):
            return word, "cookie"
        if word.startswith("-b"):
            return "-b" + _hidden("cookie", word[2:]), ""
    assigned = _ASSIGNED.match(word)
    if assigned:
        return _assignment(assigned[1], word[assigned.end() :]), ""
    option = _OPTION.fullmatch(word)
    if option is None:
        glued = word.startswith("-u") and ":" in word
        return "-u" + _without_password(word[2:]) if glued else _inside(word), ""
    if word.startswith("-p") and word != "-p" and program in _PASSWORD_P:
        return "-p" + LEFT_OUT, ""
    return word, "p" if word == "-p" else "user" if option[1] in _USERS else _kind(option[1])


def _assignment(name, value):
    """`NAME=value`, `--name=value`; the value of one that is no secret may be an assignment itself: `--env=TOKEN=x`."""
    if name.lstrip("-") in _USERS:
        return "%s=%s" % (name, _without_password(value))
    return "%s=%s" % (name, LEFT_OUT if _hides(_kind(name), value) else _inside(value))


def _value(kind, word, program):
    """A word behind an option, as it is shown; None when it is no value of it."""
    if kind == "user":
        return None if program in _PLAIN_U else _without_password(word)
    if kind == "p":
        if word.startswith("-") or program in _PLAIN_P:
            return None
        return LEFT_OUT if program in _PASSWORD_P or not _ORDINARY.fullmatch(word) else None
    return LEFT_OUT if _hides(kind, word) and not (kind == "mostly" and word.startswith("-")) else None


def _without_password(value):
    """`user:***` for `user:password`; ports, group numbers and addresses stay."""
    user, colon, password = value.partition(":")
    plain = (
        not colon or not password or password.startswith("//") or (password.isdigit() and len(password) <= MOST_DIGITS)
    )
    return _inside(value) if plain else "%s:%s" % (user, LEFT_OUT)


def _inside(text, is_code=False):
    """A text that may hold several secrets: the code of a shell, JSON, a header, an address, a traceback.

    `is_code`: names such as `key` are those of an argument there, and hide only what looks random.
    """

    def named(name, _at):
        kind = _kind(name)
        return "random" if is_code and kind in ("mostly", "short") else kind

    text = _URL.sub(_address, _HEADER.sub(r"\g<1>" + LEFT_OUT, text))
    text = _replaced(text, _NAME, named)
    if "-" in text:
        text = _replaced(text, _OPTION_INSIDE, _Options(text).kind)
    if any(program in text for program in _PASSWORD_P):
        text = _replaced(text, _GLUED, _Options(text).glued)
    text = _BEARER.sub(r"\1\2" + LEFT_OUT, text)
    text = _SIGNED.sub(lambda match: match[1] + LEFT_OUT, text)
    return _SHAPES.sub(LEFT_OUT, text)


class _Options:
    """Options in a text, and the program that each is given to: the last one before it that is known."""

    def __init__(self, text):
        self._text = text
        self._places, self._names = None, []

    def kind(self, name, at):
        """What kind of value an option has."""
        if name == "p":
            program = self._program(at)
            return "p+" if program in _PASSWORD_P else "" if program in _PLAIN_P else "p"
        if name in _USERS:
            return "" if self._program(at) in _PLAIN_U else "user"
        if _B.fullmatch(name) and self._program(at) in _COOKIE_B:
            return "cookie"
        return _kind(name)

    def glued(self, _name, at):
        """What kind of value is glued to a `-p`."""
        return "always" if self._program(at) in _PASSWORD_P else ""

    def _program(self, at):
        if self._places is None:
            self._places = []
            for match in re.finditer(r"[\w./-]+", self._text):
                name = _program_of(match[0])
                if name is not None:
                    self._places.append(match.start())
                    self._names.append(name)
        number = bisect.bisect_left(self._places, at)
        return self._names[number - 1] if number else ""


def _program_of(word):
    """A program for which `-p` or `-u` means something known, "" for a script; None for no program."""
    name = os.path.basename(word)
    if any(name in known for known in (_PLAIN_P, _PASSWORD_P, _PLAIN_U, _COOKIE_B)):
        return name
    return "" if name.endswith((".py", ".sh")) or name.startswith("python") else None


def _replaced(text, names, kind_of):
    """The text with the values behind names hidden. `kind_of` gets a name and its place."""
    parts, at = [], 0
    for match in names.finditer(text):
        if match.start() < at:
            continue
        kind = kind_of(match[1] if names.groups else "p", match.start())
        if not kind:
            continue
        scheme = _SCHEME.match(text, match.end())
        value = _VALUE.match(text, scheme.end() if scheme else match.end())
        if value is None:
            continue
        hidden = _hidden(kind, value[0])
        if hidden != value[0]:
            parts += [text[at : value.start()], hidden]
            at = value.end()
    return "".join([*parts, text[at:]]) if parts else text


def _hidden(kind, value):
    """A value with its quotes, hidden if its kind says so."""
    quote = '\\"' if value.startswith('\\"') else value[0] if value[0] in "\"'" else ""
    inner = value[len(quote) :]
    inner, end = (inner[: -len(quote)], quote) if quote and inner.endswith(quote) else (inner, "")
    if kind == "user":
        return quote + _without_password(inner) + end
    if kind == "p":
        plain = _ORDINARY.fullmatch(inner) or inner.isupper() or inner.startswith("-")
        return value if plain else quote + LEFT_OUT + end
    if kind == "p+":
        return value if inner.startswith("-") else quote + LEFT_OUT + end
    return quote + LEFT_OUT + end if _hides(kind, inner) else value


def _address(match):
    """An address without its password, and without the user where that is a token."""
    scheme, (user, colon, password) = match[1], match[2].partition(":")
    is_name = re.fullmatch(r"[A-Za-z_%][\w.%+-]{0,31}", user, re.ASCII) and not _RANDOM.fullmatch(user)
    if colon and password:
        return "%s%s:%s@" % (scheme, user if is_name or not user else LEFT_OUT, LEFT_OUT)
    if not is_name or "http" in scheme.lower():
        return "%s%s@" % (scheme, LEFT_OUT)
    return match[0]


def _further(text):
    """Without what the patterns of PIPEPROF_REDACT match."""
    given = os.environ.get(VARIABLE)
    for pattern in _patterns(given) if given else ():
        text = pattern.sub(LEFT_OUT, text)
    return text


def _patterns(given):
    """Compiled patterns; what is no regular expression stands for itself."""
    if given not in _compiled:
        patterns = []
        for line in given.split("\n"):
            try:
                pattern = re.compile(line)
            except (re.error, OverflowError, RecursionError):
                pattern = re.compile(re.escape(line))
            if line and pattern.match("") is None:  # what matches nothing at all would be everywhere
                patterns.append(pattern)
        _compiled[given] = patterns
    return _compiled[given]
