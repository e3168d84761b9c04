"""Who may ask a server of this machine: requests for its own names, with the token that it printed."""

from __future__ import annotations

import os
import secrets

from pipeprof.errors import UsageError

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")  # a page elsewhere that points its own name at this machine is refused
TOKEN = "PIPEPROF_TOKEN"  # noqa: S105 - the name of a variable
LEAST = 16  # characters of a token
WRONG_HOST = "This server answers as 127.0.0.1 or localhost alone."
WRONG_TOKEN = "The address lacks the token: open the one that pipeprof printed."  # noqa: S105 - a sentence


def new_token() -> str:
    """A token that nobody else knows, or the one in the variable. Raises UsageError for a short one."""
    given = os.environ.get(TOKEN)
    if given is None:
        return secrets.token_urlsafe(24)
    if len(given) < LEAST or not given.isascii() or not given.replace("-", "").replace("_", "").isalnum():
        raise UsageError(
            f"{TOKEN} has to be {LEAST} or more letters, digits, `-` and `_`", f"unset {TOKEN}: a new token is drawn"
        )
    return given


def is_here(host: str) -> bool:
    """Whether the header `Host` names this machine."""
    return host.partition(":")[0].lower() in NAMES


def is_token(given: str, token: str) -> bool:
    """Whether a request has the token; how long that takes says nothing."""
    return secrets.compare_digest(given.encode(errors="replace"), token.encode())
