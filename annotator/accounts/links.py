"""The secrets of links that let somebody in without a password: random, and stored only as their hash."""

import secrets
from hashlib import sha256

from annotator.refusals import Refusal

BYTES = 24


class UnknownLink(Refusal):
    """No link has this secret."""

    status = 404
    code = "unknown_link"


def new_secret() -> str:
    """Returns a secret that nobody can guess, in characters that need no escaping in an address."""
    return secrets.token_urlsafe(BYTES)


def digest_of(secret: str) -> str:
    """Returns what is stored of a secret, and looked up."""
    # Random bits need no salt and no slow hash. How long the search takes says nothing about the secret.
    return sha256(secret.encode(errors="replace")).hexdigest()
