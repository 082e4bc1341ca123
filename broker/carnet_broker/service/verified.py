"""Tokens that were verified before, under the SHA-256 of their text. Whether they are alive is asked on every hit."""

from collections import OrderedDict
from collections.abc import Collection
from hashlib import sha256

from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet.token.keyset import Keys
from carnet.token.names import MAX_TOKEN_BYTES
from carnet.token.verify import Genuine, verify_genuine

__all__ = ["Verified"]


class Verified:
    """A bounded memory of genuine tokens of one issuer (the least recently used goes first). Used on one event loop."""

    def __init__(self, size: int = 8192) -> None:
        self._size = size
        self._entries: OrderedDict[bytes, Genuine] = OrderedDict()

    def genuine(self, token: str, *, keys: Keys, issuer: str, audiences: Collection[str]) -> Genuine | Refusal:
        """Signature, claims, issuer, audience, lifetime. A key or an audience that is gone is noticed on a hit too."""
        if len(token) > MAX_TOKEN_BYTES:
            return Refusal(Reason.TOKEN_SIZE)
        key = sha256(token.encode("utf-8", "surrogatepass")).digest()
        entry = self._entries.get(key)
        if entry is not None and _stands(entry.claims, entry.kid, keys, audiences):
            self._entries.move_to_end(key)
            return entry
        opened = verify_genuine(token, keys=keys, issuer=issuer, audience=audiences)
        if isinstance(opened, Refusal):
            self._entries.pop(key, None)
            return opened
        self._entries[key] = opened
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)
        return opened

    def __len__(self) -> int:
        return len(self._entries)


def _stands(claims: Claims, kid: str, keys: Keys, audiences: Collection[str]) -> bool:
    return keys.find(kid) is not None and claims.aud in audiences
