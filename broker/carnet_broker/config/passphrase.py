"""Operators' passphrases, kept as `scrypt$n$r$p$salt$hash` (RFC 7914), salt and hash in base64url without padding."""

import base64
import hashlib
import hmac
import re

__all__ = ["MIN_SALT", "check_passphrase", "hash_passphrase", "is_passphrase_hash"]

N, R, P = 2**15, 8, 1  # 32 MiB and some 60 ms per attempt
MIN_SALT = 16  # bytes
_LENGTH = 32
_MAX_MEMORY = 160 * 1024 * 1024
_MAX_PASSPHRASE = 1024  # bytes
_FORM = re.compile(r"scrypt\$([0-9]{1,7})\$([0-9]{1,2})\$([0-9]{1,2})\$([A-Za-z0-9_-]{22,86})\$([A-Za-z0-9_-]{43})")


def hash_passphrase(passphrase: str, salt: bytes) -> str:
    """The string for `passphrase:` in carnet.yaml. salt: 16 or more random bytes. Raises ValueError for a shorter salt
    and for an empty or overlong passphrase."""
    if len(salt) < MIN_SALT or len(salt) > 64:
        raise ValueError(f"the salt must have {MIN_SALT} to 64 bytes")
    if not 0 < len(passphrase.encode()) <= _MAX_PASSPHRASE:
        raise ValueError(f"the passphrase must have 1 to {_MAX_PASSPHRASE} bytes")
    digest = _scrypt(passphrase, salt, N, R, P)
    return f"scrypt${N}${R}${P}${_text(salt)}${_text(digest)}"


def check_passphrase(passphrase: str, stored: str | None) -> bool:
    """Whether the passphrase is the stored one. Takes the same time when nothing is stored or the operator is unknown
    (None), so that a name cannot be probed; compares in constant time. Never raises for what a caller may send."""
    parsed = None if stored is None else _FORM.fullmatch(stored)
    usable = parsed is not None and _affordable(*(int(parsed[index]) for index in (1, 2, 3)))
    if parsed is None or not usable:
        parsed = _FORM.fullmatch(_NOBODY)
    if parsed is None or not _sendable(passphrase):
        return False
    found = _scrypt(passphrase, _bytes(parsed[4]), int(parsed[1]), int(parsed[2]), int(parsed[3]))
    return hmac.compare_digest(found, _bytes(parsed[5])) and usable


def is_passphrase_hash(text: str) -> bool:
    """Whether this is a stored form that `check_passphrase` can compute within its memory bound."""
    parsed = _FORM.fullmatch(text)
    return parsed is not None and _affordable(int(parsed[1]), int(parsed[2]), int(parsed[3]))


def _affordable(n: int, r: int, p: int) -> bool:
    power = n >= 2**14 and n & (n - 1) == 0
    return power and r >= 1 and 1 <= p <= 4 and 128 * n * r <= _MAX_MEMORY // 2


def _sendable(passphrase: str) -> bool:
    try:
        return 0 < len(passphrase.encode()) <= _MAX_PASSPHRASE
    except UnicodeEncodeError:
        return False


def _scrypt(passphrase: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(passphrase.encode(), salt=salt, n=n, r=r, p=p, maxmem=_MAX_MEMORY, dklen=_LENGTH)


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


_NOBODY = f"scrypt${N}${R}${P}${_text(bytes(MIN_SALT))}${_text(bytes(_LENGTH))}"
