"""Tokens that were verified before, under the hash of their whole text. A hit asks again whatever can have changed.

Bearer tokens are not kept: only their SHA-256 and their claims.
"""

from collections import OrderedDict
from collections.abc import KeysView
from hashlib import sha256
from threading import Lock
from typing import NamedTuple

from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet.token.keyset import Keys
from carnet.token.marks import Revoked, dead, marks
from carnet.token.names import LEEWAY, MAX_TOKEN_BYTES
from carnet.token.verify import living, verify_genuine

__all__ = ["Known", "VerifiedCache"]


class Known(NamedTuple):
    """A token that is genuine, with what `refused` looks at taken apart once. Not yet known to be alive.

    It is in its time while `opens <= now < closes`."""

    claims: Claims
    kid: str
    opens: int
    closes: int
    carried: KeysView[str]  # in order, and `isdisjoint` of two such views walks the smaller

    def refused(self, keys: Keys, revoked: Revoked, now: int) -> Refusal | None:
        """Why it is dead, or None. What can have changed since the token was read is asked here, at every use: whether
        the issuer still publishes the key, nbf and exp, and the marks."""
        claims, kid, opens, closes, carried = self
        if keys.find(kid) is None:
            return Refusal(Reason.TOKEN_KEY)
        if opens <= now < closes and dead(carried, claims.iat, revoked) is None:
            return None
        return living(claims.iat, claims.nbf, claims.exp, carried, revoked, now)


class VerifiedCache:
    """A verifier of one issuer and audience with a bounded memory (least recently used goes first). Thread-safe.

    Expiry, revocation and whether the issuer still publishes the key are asked on every hit; only the signature and the
    reading of claims are saved. Refusals are not kept. tenant: the only one whose tokens are taken, where it is known.
    """

    __slots__ = ("_audience", "_entries", "_host", "_issuer", "_lock", "_size", "_tenant")

    def __init__(
        self, *, issuer: str, audience: str, host: str | None = None, tenant: str | None = None, size: int = 4096
    ) -> None:
        if size < 1:
            raise ValueError("the cache holds at least one token")
        self._issuer = issuer
        self._audience = audience
        self._host = host
        self._tenant = tenant
        self._size = size
        self._lock = Lock()
        self._entries: OrderedDict[bytes, Known] = OrderedDict()

    def verify(self, token: object, *, keys: Keys, revoked: Revoked, now: int) -> Claims | Refusal:
        """As `carnet.token.verify.verify`, for this cache's issuer, audience and host."""
        known = self.known(token, keys=keys)
        if isinstance(known, Refusal):
            return known
        refused = known.refused(keys, revoked, now)
        return known.claims if refused is None else refused

    def known(self, token: object, *, keys: Keys) -> Known | Refusal:
        """The first half of `verify`: what stays true of a token. Alone it proves no life."""
        if type(token) is not str or len(token) > MAX_TOKEN_BYTES:
            return Refusal(Reason.TOKEN_SIZE) if type(token) is str else Refusal(Reason.TOKEN_MALFORMED)
        key = sha256(token.encode("utf-8", "surrogatepass")).digest()
        try:  # no lock: each of the two is one step for other threads, and what is forgotten between them is read anew
            found = self._entries[key]
            self._entries.move_to_end(key)
            return found
        except KeyError:
            pass
        opened = self._opened(token, keys)
        if not isinstance(opened, Refusal):
            self._keep(key, opened)
        return opened

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"VerifiedCache(audience={self._audience!r}, {len(self)} of {self._size})"

    def _opened(self, token: str, keys: Keys) -> Known | Refusal:
        genuine = verify_genuine(token, keys=keys, issuer=self._issuer, audience=self._audience)
        if isinstance(genuine, Refusal):
            return genuine
        claims = genuine.claims
        if self._tenant is not None and claims.tenant != self._tenant:
            return Refusal(Reason.TOKEN_AUD, "The token is another tenant's.")
        opens, closes = max(claims.iat, claims.nbf) - LEEWAY, claims.exp + LEEWAY
        return Known(claims, genuine.kid, opens, closes, dict.fromkeys(marks(claims, self._host)).keys())

    def _keep(self, key: bytes, entry: Known) -> None:
        with self._lock:
            self._entries[key] = entry
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)
