"""Lines of the local lane: the digests are the audit's own, and nothing of a call stands in clear unless allowed."""

import json
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from carnet.audit import argument_digests
from carnet.guard.records import decided

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    args=st.dictionaries(st.text(), VALUES, max_size=3),
    clear=st.sets(st.text(), max_size=2),
    detail=st.text(),
    tool=st.text(min_size=1),
)
def test_a_line_is_one_json_object_with_every_member(
    args: dict[str, Any], clear: set[str], detail: str, tool: str
) -> None:
    ref = SimpleNamespace(id="p", version=1, digest="d")
    book: Any = SimpleNamespace(
        policy=SimpleNamespace(ref=ref), host="desk", audit_key=b"k", clear=frozenset(clear), begun={}
    )
    about = SimpleNamespace(id="dlg_1", chain=(("a", "b", "c"),), agent="reader", level=0, trace_id="t" * 32)
    claims: Any = SimpleNamespace(jti="j", txn="run", client_id="app", delegation=about)
    given_: dict[str, Any] = {"kind": "call_intent", "call": "call_1", "at": 5, "tool": tool, "args": args}
    for trace in ("", "f" * 32):
        text = decided(book, claims, decision="allow", reason="r", detail=detail, rule=None, trace_id=trace, **given_)
        line = json.loads(text)
        assert (line["call"], line["at"], line["tool"], line["detail"]) == ("call_1", 5, tool, detail)
        assert line["args"] == argument_digests(b"k", args)
        assert line["clear"] == {name: value for name, value in args.items() if name in clear}
        assert line["trace_id"] == (trace or "t" * 32)
        assert line["chain"] == [["a", "b", "c"]]
    assert len(book.begun) == 1
