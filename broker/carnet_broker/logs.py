"""The log: one JSON object per line on stderr, and never a secret.

Values of secret types are replaced whole; in text, whatever looks like a token or a credential header is. Exceptions
are logged by type and place: their messages may quote what a caller sent.
"""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from traceback import extract_tb
from typing import Any, TextIO

from pydantic import SecretBytes, SecretStr

__all__ = ["JsonLines", "configure", "redact"]

_HIDDEN = "[redacted]"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")
_CREDENTIAL = re.compile(r"(?i)\b(bearer|basic|dpop)\s+[A-Za-z0-9._~+/=-]{6,}")
_NAMED = re.compile(r"(?i)\b(passphrase|password|secret|client_secret|client_assertion|access_token|token)=[^\s&]+")
_ATOMS = (int, float, bool, type(None))


def redact(value: Any) -> Any:
    """A value as it may stand in a log."""
    if isinstance(value, str):
        text = _TOKEN.sub(_HIDDEN, value)
        text = _CREDENTIAL.sub(rf"\1 {_HIDDEN}", text)
        return _NAMED.sub(rf"\1={_HIDDEN}", text)
    if isinstance(value, SecretStr | SecretBytes | bytes | bytearray):
        return _HIDDEN
    if isinstance(value, _ATOMS):
        return value
    if isinstance(value, dict):
        return {str(name): redact(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(inner) for inner in value]
    return f"[{type(value).__name__}]"


class JsonLines(logging.Formatter):
    """Members: at, level, logger, event, and the `fields` given as `extra={"fields": {…}}`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": redact(_message(record)),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            line.update(redact(fields))
        if record.exc_info and record.exc_info[0] is not None:
            line["fault"] = record.exc_info[0].__name__
            line["places"] = [f"{f.filename}:{f.lineno} {f.name}" for f in extract_tb(record.exc_info[2])[-8:]]
        return json.dumps(line, ensure_ascii=True, default=str)


def configure(level: str, stream: TextIO | None = None) -> None:
    """Send all logs of the process there as JSON lines. Loggers of the HTTP server say nothing below errors."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL if name.startswith("uvicorn") else logging.ERROR)


def _message(record: logging.LogRecord) -> str:
    if not record.args:
        return str(record.msg)
    args = record.args
    shown = redact(args) if isinstance(args, dict) else tuple(redact(arg) for arg in args)
    try:
        return str(record.msg) % shown
    except (TypeError, ValueError):
        return str(record.msg)
