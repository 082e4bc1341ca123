"""Makes arguments.json, the published vectors of `carnet-args-1`: `python -m tests.vectors.make`.

The canonical bytes and digests are built here from the definition alone, not by the product, so the file checks the
product and any other implementation. Running it must reproduce the committed file byte for byte.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

__all__ = ["PATH", "document", "main"]

PATH = Path(__file__).with_name("arguments.json")
BINDING = {
    "tenant": "acme",
    "run": "dlg_run0000000000000001",
    "delegation": "dlg_kid0000000000000001",
    "host": "crm",
    "tool": "refund",
    "policy_digest": "a" * 64,
}
FORMAT = (
    "digest = hex SHA-256 over 'carnet-args-1' NUL, then tenant, run, delegation, host, tool, policy_digest and"
    " canonical, each as UTF-8 bytes after its length in 4 bytes, big-endian"
)
# (name, arguments as JSON text on the wire, canonical form)
ACCEPTED: tuple[tuple[str, str, str], ...] = (
    ("no arguments", " { } ", "{}"),
    (
        "members are sorted by code point",
        '{"b":1,"a":2,"A":3,"":4,"é":5,"😀":6,"\uffee":7}',
        '{"":4,"A":3,"a":2,"b":1,"é":5,"\uffee":7,"😀":6}',
    ),
    ("nested members are sorted too", '{"x":{"b":[{"d":1,"c":2}],"a":null}}', '{"x":{"a":null,"b":[{"c":2,"d":1}]}}'),
    ("an integer", '{"amount":1}', '{"amount":1}'),
    ("a float that is whole", '{"amount":1.0}', '{"amount":1.0}'),
    ("a float with an exponent that is whole", '{"amount":1e0}', '{"amount":1.0}'),
    ("a string of digits", '{"amount":"1"}', '{"amount":"1"}'),
    ("true is no number", '{"amount":true}', '{"amount":true}'),
    ("shortest round trip", '{"amount":0.10000000000000001}', '{"amount":0.1}'),
    ("small floats have an exponent", '{"amount":0.00001}', '{"amount":1e-05}'),
    ("floats below 1e16 have none", '{"amount":1e15}', '{"amount":1000000000000000.0}'),
    ("floats from 1e16 on have one", '{"amount":1e16}', '{"amount":1e+16}'),
    ("zero", '{"amount":0}', '{"amount":0}'),
    ("zero as a float", '{"amount":0.0}', '{"amount":0.0}'),
    ("the largest integer", '{"n":9007199254740991}', '{"n":9007199254740991}'),
    ("the smallest integer", '{"n":-9007199254740991}', '{"n":-9007199254740991}'),
    ("composed é", '{"name":"caf\u00e9"}', '{"name":"caf\u00e9"}'),
    ("decomposed é is another string", '{"name":"cafe\u0301"}', '{"name":"cafe\u0301"}'),
    (
        "escapes are minimal",
        '{"t":"\\u0041\\/\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\\u2028"}',
        '{"t":"A/\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\u007f\u2028"}',
    ),
    ("a surrogate pair is one character", '{"t":"\\ud83d\\ude00"}', '{"t":"😀"}'),
    ("an empty array and object", '{"a":[],"o":{}}', '{"a":[],"o":{}}'),
    ("arrays keep their order", '{"a":[3,1,2]}', '{"a":[3,1,2]}'),
)
# (name, text on the wire, reason)
REFUSED: tuple[tuple[str, str, str], ...] = (
    ("a member twice", '{"a":1,"a":1}', "arguments_duplicate"),
    ("a nested member twice", '{"o":{"a":1,"a":2}}', "arguments_duplicate"),
    ("NaN", '{"a":NaN}', "arguments_invalid"),
    ("minus infinity", '{"a":-Infinity}', "arguments_invalid"),
    ("a float out of range", '{"a":1e999}', "arguments_invalid"),
    ("2^53", '{"a":9007199254740992}', "arguments_invalid"),
    ("-2^53", '{"a":-9007199254740992}', "arguments_invalid"),
    ("twenty digits", '{"a":12345678901234567890}', "arguments_invalid"),
    ("minus zero", '{"a":-0}', "arguments_invalid"),
    ("minus zero as a float", '{"a":-0.0}', "arguments_invalid"),
    ("half a surrogate pair", '{"a":"\\ud800"}', "arguments_invalid"),
    ("half a surrogate pair as a name", '{"\\udfff":1}', "arguments_invalid"),
    ("an array", "[1]", "arguments_invalid"),
    ("null", "null", "arguments_invalid"),
    ("nothing", "", "arguments_invalid"),
    ("a byte order mark", "\ufeff{}", "arguments_invalid"),
    ("two values", "{}{}", "arguments_invalid"),
    ("depth 17", '{"a":' + "[" * 16 + "]" * 16 + "}", "arguments_too_large"),
)


def document() -> dict[str, Any]:
    accepted = [
        {"name": name, "arguments": wire, "canonical": canonical, "digest": _digest(canonical)}
        for name, wire, canonical in ACCEPTED
    ]
    refused = [{"name": name, "arguments": wire, "reason": reason} for name, wire, reason in REFUSED]
    return {"format": FORMAT, "binding": BINDING, "accepted": accepted, "refused": refused}


def text() -> str:
    return json.dumps(document(), indent=1, ensure_ascii=True) + "\n"


def main() -> None:
    PATH.write_text(text(), encoding="ascii")


def _digest(canonical: str) -> str:
    framed = b"carnet-args-1\x00"
    for part in (*BINDING.values(), canonical):
        raw = part.encode()
        framed += len(raw).to_bytes(4, "big") + raw
    return hashlib.sha256(framed).hexdigest()


if __name__ == "__main__":
    main()
