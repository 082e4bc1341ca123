"""How this process proves which client it is (RFC 6749 §2.3.1, RFC 7523 §2.2)."""

from pathlib import Path
from typing import Any

from carnet.errors import ConfigError
from carnet.wire.settings import Settings, read

__all__ = ["Credential"]

_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_LIFETIME = 60  # seconds; the broker accepts up to 300
_MIN_SECRET, _MAX_SECRET = 32, 1024  # bytes, as the broker takes them


class Credential:
    """One client's credential: a P-256 key (`Credential.key`) or a secret of 32 to 1024 bytes (`.secret`)."""

    __slots__ = ("_pem", "_private", "_secret", "client_id")

    def __init__(self, client_id: str, *, pem: str | None = None, secret: str | None = None) -> None:
        if not client_id or (pem is None) == (secret is None):
            raise ConfigError("a credential is a client id and either a key or a secret")
        self.client_id = client_id
        self._pem = pem
        self._secret = secret
        self._private: Any = None

    @classmethod
    def key(cls, client_id: str, pem: str | Path) -> "Credential":
        """A P-256 private key, as PEM text or the path of a PEM file. ConfigError if it can't be read."""
        if isinstance(pem, str) and pem.lstrip().startswith("-----BEGIN"):
            return cls(client_id, pem=pem)
        return cls(client_id, pem=_file(Path(pem), "key"))

    @classmethod
    def secret(cls, client_id: str, secret: str) -> "Credential":
        """A shared secret. ConfigError if it is shorter than 32 bytes or longer than 1024."""
        if not _MIN_SECRET <= len(secret.encode("utf-8", "surrogatepass")) <= _MAX_SECRET:
            raise ConfigError(
                f"the secret of client {client_id} must have {_MIN_SECRET} to {_MAX_SECRET} bytes; make one with "
                'python -c "import secrets; print(secrets.token_urlsafe(32))"'
            )
        return cls(client_id, secret=secret)

    @classmethod
    def from_env(cls) -> "Credential":
        """From CARNET_CLIENT_ID and one of CARNET_CLIENT_KEY, CARNET_CLIENT_SECRET_FILE. ConfigError if incomplete."""
        found = cls.of(read())
        if found is None:
            raise ConfigError("set CARNET_CLIENT_ID and one of CARNET_CLIENT_KEY, CARNET_CLIENT_SECRET_FILE")
        return found

    @classmethod
    def of(cls, settings: Settings) -> "Credential | None":
        """The credential that the settings name; None when they name none at all."""
        if settings.client_id is None:
            if settings.client_key or settings.client_secret_file:
                raise ConfigError("CARNET_CLIENT_ID is missing")
            return None
        if settings.client_key and settings.client_secret_file:
            raise ConfigError("set only one of CARNET_CLIENT_KEY and CARNET_CLIENT_SECRET_FILE")
        if settings.client_key:
            return cls.key(settings.client_id, Path(settings.client_key))
        if settings.client_secret_file:
            return cls.secret(settings.client_id, _file(Path(settings.client_secret_file), "secret").strip())
        raise ConfigError("CARNET_CLIENT_ID needs one of CARNET_CLIENT_KEY, CARNET_CLIENT_SECRET_FILE")

    def proof(self, issuer: str, now: int, jti: str) -> dict[str, str]:
        """The form fields that authenticate one request: an assertion for `issuer` alone, or the secret."""
        if self._secret is not None:
            return {"client_id": self.client_id, "client_secret": self._secret}
        import jwt  # costs 0.3 s to import: only processes that sign pay for it

        claims = {
            "iss": self.client_id,
            "sub": self.client_id,
            "aud": issuer,
            "jti": jti,
            "iat": now,
            "exp": now + _LIFETIME,
        }
        return {
            "client_id": self.client_id,
            "client_assertion_type": _ASSERTION,
            "client_assertion": jwt.encode(claims, self._loaded(), algorithm="ES256"),
        }

    def _loaded(self) -> Any:
        if self._private is None:
            from cryptography.hazmat.primitives.asymmetric import ec
            from cryptography.hazmat.primitives.serialization import load_pem_private_key

            try:
                private = load_pem_private_key((self._pem or "").encode(), None)
            except (ValueError, TypeError):
                # The cause may quote key material: it is cut off.
                raise ConfigError(f"the key of client {self.client_id} is no unencrypted PEM private key") from None
            if not isinstance(private, ec.EllipticCurvePrivateKey) or private.curve.name != "secp256r1":
                raise ConfigError(f"the key of client {self.client_id} is not on curve P-256")
            self._private = private
        return self._private

    def __repr__(self) -> str:
        kind = "secret" if self._pem is None else "key"
        return f"Credential.{kind}({self.client_id!r}, ...)"


def _file(path: Path, what: str) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"the {what} file {path} can't be read") from None
