"""Tokens that were verified before, under the hash of their whole text. A hit asks again whatever can have changed.

Bearer tokens are not kept: only their SHA-256 and their claims.
"""

from collections import OrderedDict
from hashlib import sha256
from threading import Lock
from typing import NamedTuple

from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet.token.keyset import Keys
from carnet.token.marks import Revoked, marks
from carnet.token.names import MAX_TOKEN_BYTES
from carnet.token.verify import living, verify_genuine

__all__ = ["VerifiedCache"]


class _Entry(NamedTuple):
    claims: Claims
    kid: str
    iat: int
    nbf: int
    exp: int
    marks: tuple[str, ...]


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
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()

    def verify(self, token: object, *, keys: Keys, revoked: Revoked, now: int) -> Claims | Refusal:
        """As `carnet.token.verify.verify`, for this cache's issuer, audience and host."""
        if type(token) is not str or len(token) > MAX_TOKEN_BYTES:
            return Refusal(Reason.TOKEN_SIZE) if type(token) is str else Refusal(Reason.TOKEN_MALFORMED)
        key = sha256(token.encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
        if entry is None or keys.find(entry.kid) is None:
            made = self._opened(token, keys)
            if isinstance(made, Refusal):
                return made
            entry = made
            self._keep(key, entry)
        claims, _, iat, nbf, exp, carried = entry
        refused = living(iat, nbf, exp, carried, revoked, now)
        return claims if refused is None else refused

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"VerifiedCache(audience={self._audience!r}, {len(self)} of {self._size})"

    def _opened(self, token: str, keys: Keys) -> _Entry | Refusal:
        genuine = verify_genuine(token, keys=keys, issuer=self._issuer, audience=self._audience)
        if isinstance(genuine, Refusal):
            return genuine
        claims = genuine.claims
        if self._tenant is not None and claims.tenant != self._tenant:
            return Refusal(Reason.TOKEN_AUD, "The token is another tenant's.")
        return _Entry(claims, genuine.kid, claims.iat, claims.nbf, claims.exp, marks(claims, self._host))

    def _keep(self, key: bytes, entry: _Entry) -> None:
        with self._lock:
            self._entries[key] = entry
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)
