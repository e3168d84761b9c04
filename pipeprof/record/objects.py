"""Objects below a prefix in a bucket, through pyarrow.fs: `s3://`, `gs://`, `az://`; a local folder is one, too.

There is no rename in a bucket: what belongs together is named by one object, a pointer, which is written last. The
others have names that hold their hash (`measures-1f0c...parquet`): two writers never touch one another's, a writer that
begins again finds what it has written, and a reader that holds an older pointer still finds its own. What no pointer
names is removed by a later write, a day afterwards.

Where no write fails when the object is there, a claim says who may write the pointer: an object with a random name
below the prefix. Its writer lists the claims, and may write when there is no other. Else the one with the smaller name
waits for the others to go, and the others take theirs back, wait for it, and begin again. A claim is written before
the claims are listed and goes after the pointer is written, so of two writers at least one sees the other; that needs a
storage whose listing has what was written before, as those of Amazon, Google and Azure, and a local disk, have. Claims
last for seconds: one that is older than DEAD_S is left from a writer that was killed.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from pipeprof.errors import RunError, UsageError
from pipeprof.record.object_account import azure_account, refuse_no_google_login, words

if TYPE_CHECKING:
    from typing_extensions import Self

KEPT = dt.timedelta(days=1)
_PIECE = 1 << 20  # bytes
_GIVEN_UP_S = 15  # Google's client asks again for a quarter of an hour; what it takes is some three times that
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_NO_BUCKET = re.compile("NO_SUCH_BUCKET|bucket does not exist|ContainerNotFound", re.IGNORECASE)
_FORBIDDEN = re.compile(
    "ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE_DOES_NOT_MATCH|EXPIRED_TOKEN|forbidden|permission.?denied|"
    r"UNAUTHENTICATED|HTTP status (code: )?40[13]|Azure Error: \[\w*\] 40[13]",
    re.IGNORECASE,
)
_AROUND = re.compile(r".*(Azure Error: (\[\] )?|error message was: |with a last message of )")  # the reason in an error
_NO_URI = re.compile(r'[^!-~]|["<>\\^`{|}]')  # characters that a URI has as %20 only
_UNSAFE = re.compile("[][%?#\x00-\x20\x7f]")  # in a name, where a URL would mean something else


class StorageError(RunError):
    """The storage failed. `passes`: asking again may help, as it may not where it refuses."""

    def __init__(self, message: str, hint: str = "", *, passes: bool = True) -> None:
        super().__init__(message, hint)
        self.passes = passes


def is_url(text: str) -> bool:
    """Whether it begins as a URL does: `s3://`, `file://`."""
    return _URL.match(text) is not None


def _located(url: str) -> tuple[Any, str]:
    """The file system of pyarrow that a URL names, and the path in it. Raises UsageError as `Objects.at`."""
    shown = without_secrets(url)
    if url.startswith(("abfs://", "abfss://")):
        raise UsageError(f"cannot open `{shown}`", "write az://container/prefix: the account is in the environment")
    for sign in "#?" if url.startswith("file:") else "#":
        if sign in url:  # pyarrow leaves out what stands behind it, in silence
            raise UsageError(f"cannot open `{shown}`: its URL has a `{sign}`", f"write {quote(sign)} in its place")
    if url.startswith(("gs://", "gcs://")):
        refuse_no_google_login(url)
    try:
        escaped = _NO_URI.sub(lambda match: quote(match.group()), url)
        system, path = _azure(escaped) if url.startswith("az://") else fs.FileSystem.from_uri(_patient(escaped))
    except (pa.ArrowException, ImportError, OSError, TypeError, ValueError) as error:
        raise UsageError(
            f"cannot open `{shown}`: {short(error, url)}",
            "use a folder, s3://bucket/prefix?region=..., gs://bucket/prefix, az://container/prefix or file:///folder",
        ) from error
    return system, path.rstrip("/") if isinstance(system, fs.LocalFileSystem) else path.strip("/")


def _patient(url: str) -> str:
    if not url.startswith(("gs://", "gcs://")) or "retry_limit_seconds=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}retry_limit_seconds={_GIVEN_UP_S}"


def _azure(url: str) -> tuple[Any, str]:
    """`az://container/prefix`: pyarrow's own `abfs://` wants the account in the URL."""
    parts = urlsplit(url)
    if parts.query or "@" in parts.netloc:
        raise ValueError("az:// takes a container and a prefix, and no account or options")
    return fs.AzureFileSystem(**azure_account()), f"{parts.netloc}{unquote(parts.path)}"


def names_user(url: str) -> bool:
    """Whether a URL holds a user, with a password or without one; nobody, as in `gs://anonymous@bucket`, is none."""
    parts = _split(url)  # `abfs://container@account` names none
    return not parts.scheme.startswith("abfs") and parts.netloc.rpartition("@")[0] not in ("", "anonymous")


def without_secrets(url: str) -> str:
    """A URL for people: no user, password or options."""
    parts = _split(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


def _split(url: str) -> SplitResult:
    """As urlsplit. Raises UsageError for what is no URL to it, such as `s3://[bucket]`: it is shown without secrets."""
    try:
        return urlsplit(url)
    except ValueError as error:
        shown = url.rpartition("@")[2].partition("?")[0]
        raise UsageError(f"`{shown}` is no URL", "give one such as s3://bucket/runs/RUN, without brackets") from error


def below(url: str, name: str) -> str:
    """The URL of what has this name below another URL."""
    if not name:
        return url
    front, mark, options = url.partition("?")
    return f"{front.rstrip('/')}/{escaped(name)}{mark}{options}"


def escaped(name: str) -> str:
    """A name as it stands in a URL."""
    return _UNSAFE.sub(lambda match: quote(match.group()), name)


class Objects:
    """What lies below a prefix, by its name there. All raise StorageError when the storage fails.

    `system`: any file system of pyarrow; `prefix`: a path in it, without a slash at its end; `shown`: for people.
    """

    def __init__(self, system: Any, prefix: str, shown: str) -> None:
        self.system = system
        self.prefix = prefix
        self.shown = shown
        self.is_local = isinstance(system, fs.LocalFileSystem)

    @classmethod
    def at(cls, url: str) -> Self:
        """What lies at a URL. Credentials come from the environment.

        Options of the storage go into the query, as `?endpoint_override=http://host:9000&region=eu-1`; those of Azure
        are in the environment. Raises UsageError for a URL that pyarrow does not know, and where a login is missing.
        """
        return cls(*_located(url), without_secrets(url))

    def path(self, name: str) -> str:
        """The path of an object in the file system."""
        return f"{self.prefix}/{name}"

    def below(self, name: str) -> Objects:
        """What lies below a name here, by the same connections."""
        if not name:
            return self
        return Objects(self.system, self.path(name), without_secrets(below(self.shown, name)))

    def get(self, name: str, most: int) -> bytes | None:
        """A whole object, None when it is not there. Raises RunError for one of more than `most` bytes."""
        path = self.path(name)
        with self.errors(path, "read"):
            try:
                with self.system.open_input_stream(path) as stream:
                    data = bytes(stream.read(most + 1))
            except FileNotFoundError:
                return None
        if len(data) > most:
            raise RunError(
                f"`{path}` in `{self.shown}` has more than {most:,} bytes",
                "remove it, or write what it belongs to again",
            )
        return data

    def pieces(self, name: str) -> Iterator[bytes]:
        """An object in pieces; none when it is not there."""
        path = self.path(name)
        with self.errors(path, "read"):
            try:
                stream = self.system.open_input_stream(path)
            except FileNotFoundError:
                return
            with stream:
                while piece := stream.read(_PIECE):
                    yield bytes(piece)

    def put(self, name: str, data: bytes) -> None:
        """Write an object, which is there as a whole or not at all."""
        self.put_pieces(name, [data])

    def put_pieces(self, name: str, pieces: Iterable[bytes]) -> None:
        """As `put`, but where the pieces end with an error, what came before may be there in a bucket: `discard` it."""
        path, unfinished = self.path(name), f"{name}.{os.getpid()}.tmp"
        written = self.path(unfinished) if self.is_local else path
        with self.errors(path, "write"):
            if self.is_local:
                self.system.create_dir(path.rpartition("/")[0])
            try:
                with self.system.open_output_stream(written) as stream:
                    for piece in pieces:
                        stream.write(piece)
                if self.is_local:
                    self.system.move(written, path)
            except BaseException:
                if self.is_local:
                    self.discard(unfinished)
                raise

    def discard(self, name: str) -> None:
        """Remove an object, if it is there. A failure here is none: it stays, and nothing names it."""
        with contextlib.suppress(OSError, pa.ArrowException):
            self.system.delete_file(self.path(name))

    def sizes(self, names: Iterable[str]) -> list[int | None]:
        """Bytes of each object; None of one that is not there."""
        with self.errors(self.prefix, "read"):
            infos = self.system.get_file_info([self.path(name) for name in names])
        return [info.size if info.type == fs.FileType.File else None for info in infos]

    def listed(self, folder: str = "") -> dict[str, dt.datetime | None]:
        """When each object directly below a name, or the prefix, was changed; by its own name."""
        path = self.path(folder) if folder else self.prefix
        with self.errors(path, "list"):
            infos = self.system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return {info.base_name: info.mtime for info in infos if info.type == fs.FileType.File}

    def every(self) -> dict[str, Any] | None:
        """What pyarrow says of each object below the prefix, by its name there; None when nothing is there at all.

        Folders are seen by what is in them: Google's are not listed themselves. Raises StorageError also where there is
        no such bucket.
        """
        infos = []
        with self.errors(self.prefix, "list"), contextlib.suppress(NotADirectoryError):
            infos = self.system.get_file_info(fs.FileSelector(self.prefix, allow_not_found=True, recursive=True))
        if not infos:
            self.refuse_no_bucket()
            return None
        return {info.path.removeprefix(self.path("")): info for info in infos if info.type == fs.FileType.File}

    def exists(self) -> bool:
        """Whether anything lies below the prefix. Raises StorageError also where there is no such bucket."""
        with self.errors(self.prefix, "read"):
            is_there = self.system.get_file_info(self.prefix).type != fs.FileType.NotFound
        if not is_there:
            self.refuse_no_bucket()
        return bool(is_there)

    def refuse_no_bucket(self) -> None:
        """Raises StorageError where the storage says that there is no such bucket."""
        bucket = self.prefix.partition("/")[0]
        with contextlib.suppress(OSError, pa.ArrowException):
            if not self.is_local and self.system.get_file_info(bucket).type == fs.FileType.NotFound:
                named = words(self.shown)
                raise StorageError(
                    f"there is no such {named.bucket}: `{bucket}` of `{self.shown}`",
                    f"check the name of the {named.bucket}, and {named.where}",
                    passes=False,
                )

    def prune(self, pointed_to: Collection[str]) -> None:
        """Remove what lies beside these objects and no pointer has named for a day. A failure here harms nothing."""
        limit = dt.datetime.now(dt.timezone.utc) - KEPT
        with contextlib.suppress(RunError):
            for folder in {name.rpartition("/")[0] for name in pointed_to}:
                for own_name, changed in self.listed(folder).items():
                    name = f"{folder}/{own_name}" if folder else own_name
                    if name not in pointed_to and changed and changed < limit:
                        self.discard(name)

    @contextlib.contextmanager
    def errors(self, path: str, verb: str) -> Iterator[None]:
        """Turns what pyarrow raises into a StorageError that names the object."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            why, text, named = "", str(error), words(self.shown)
            hint = f"check the URL, {named.where}, and the credentials in the environment: {named.login}"
            if self.is_local:
                hint = "check the path and its permissions"
            no_bucket = verb == "write" and isinstance(error, FileNotFoundError) and not self.is_local
            if no_bucket or _NO_BUCKET.search(text):
                why = f"there is no such {named.bucket}: "
                hint = f"check the name of the {named.bucket}, and {named.where}"
            elif "OAuth2 access token" in text:
                why, hint = "no login: ", f"check the credentials in the environment: {named.login}"
            elif _FORBIDDEN.search(text):
                why, hint = (
                    "it is forbidden: ",
                    f"check the credentials in the environment, and what they may do: {named.login}",
                )
            raise StorageError(
                f"cannot {verb} `{path}` in `{self.shown}`: {why}{short(error, self.shown)}", hint,
                passes=not why and isinstance(error, OSError),
            ) from error  # fmt: skip


def object_name(name: str, sha256: str) -> str:
    """The name of a file with its hash: `measures.parquet` becomes `measures-1f0c....parquet`."""
    stem, dot, suffix = name.partition(".")
    return f"{stem}-{sha256[:16]}{dot}{suffix}" if sha256 else name


def short(error: Exception, url: str) -> str:
    """The first line of an error, without the secrets of a URL, and of the reasons in it the last alone."""
    lines = str(error).replace(url, without_secrets(url)).splitlines()
    return _AROUND.sub("", lines[0].partition(" error_info=")[0])[:300] if lines else type(error).__name__


CLAIM = ".claim-"
DEAD_S = 60.0
_LOOK_S = 0.2


@contextlib.contextmanager
def claimed(objects: Objects, subject: str, pause: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """Hold the prefix against writers of another `subject`, a short hash. Raises StorageError."""
    name = f"{CLAIM}{secrets.token_hex(8)}-{subject}"
    try:
        while not _holds(objects, name, pause):
            pass
        yield
    finally:
        objects.discard(name)


def _holds(objects: Objects, name: str, pause: Callable[[float], None]) -> bool:
    """Put the claim, and wait. True when it is the only one; False when it was taken back and the others have gone."""
    objects.put(name, b"pipeprof push\n")
    began, put_at = time.monotonic(), None
    while True:
        claims = {there: changed for there, changed in objects.listed().items() if there.startswith(CLAIM)}
        put_at = claims.get(name) or put_at
        others = _alive(objects, claims, name, put_at, time.monotonic() - began)
        if name in claims and not others:
            return True
        if name not in claims:
            if not others:
                return False  # it was taken back, or somebody took it for dead
        elif min(others) < name:
            objects.discard(name)
        pause(_LOOK_S)


def _alive(
    objects: Objects, claims: dict[str, dt.datetime | None], name: str, put_at: dt.datetime | None, waited_s: float
) -> list[str]:
    """The claims of others on something else; those of writers that must be gone are removed.

    Their age is told by the storage's own clock: it is that of the own claim, and as much older as was waited since.
    """
    subject = name.rpartition("-")[2]
    others = [one for one in claims if one != name and one.rpartition("-")[2] != subject and not one.endswith(".tmp")]
    alive = []
    for one in others:
        at = claims[one]
        age = waited_s + ((put_at - at).total_seconds() if put_at and at else 0.0)
        if age > DEAD_S:
            objects.discard(one)
        else:
            alive.append(one)
    return alive
