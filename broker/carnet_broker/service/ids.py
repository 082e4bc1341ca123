"""The only source of randomness: ids of 128 random bits, `dlg_`, `apr_` or `call_` and 26 characters of base32."""

import base64
import secrets
from typing import Protocol

__all__ = ["Ids", "RandomIds", "encode"]


class Ids(Protocol):
    def delegation(self) -> str: ...

    def approval(self) -> str: ...

    def call(self) -> str: ...


class RandomIds:
    def delegation(self) -> str:
        return f"dlg_{encode(secrets.token_bytes(16))}"

    def approval(self) -> str:
        return f"apr_{encode(secrets.token_bytes(16))}"

    def call(self) -> str:
        return f"call_{encode(secrets.token_bytes(16))}"


def encode(raw: bytes) -> str:
    """16 bytes as 26 lower-case base32 characters (RFC 4648 section 6, without padding)."""
    return base64.b32encode(raw).decode().rstrip("=").lower()
