"""Who may use the server: whoever has the token, and a proxy that signs users in and has it, too."""

from __future__ import annotations

import base64
import binascii

from jupyter_server.auth.identity import PasswordIdentityProvider, User
from tornado.web import RequestHandler


class TokenIdentity(PasswordIdentityProvider):
    """Accepts the token also as the password of HTTP's Basic scheme.

    A proxy adds that to each request of a browser. So unlike other requests with a token, these may come from any page
    that the browser shows: the server checks their origin, and asks for the value of its cookie against forgery.
    """

    def get_token(self, handler: RequestHandler) -> str | None:
        """Return the token of a request."""
        found = _basic(handler)
        return super().get_token(handler) if found is None else found[1]

    def is_token_authenticated(self, handler: RequestHandler) -> bool:
        """Return whether a request came from a program that has the token, and not from a browser."""
        return _basic(handler) is None and super().is_token_authenticated(handler)

    def generate_anonymous_user(self, handler: RequestHandler) -> User:
        """Return the user whom the proxy signed in; for other requests, one with a name of chance."""
        found = _basic(handler)
        if found is None:
            return super().generate_anonymous_user(handler)
        return User(found[0], handler.request.headers.get("X-Forwarded-Email") or found[0])


def _basic(handler: RequestHandler) -> tuple[str, str] | None:
    """Return name and password of the Basic scheme; None for a request without them."""
    scheme, _, coded = handler.request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, _, password = base64.b64decode(coded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return name, password.strip()
