"""Texts to a Policy: several files form one policy, and anything not understood keeps it from loading."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path, PurePath
from typing import TypeVar, cast

from carnet_policy.catalog import UNKNOWN, ToolFacts, read_catalog
from carnet_policy.decision import Decision, Effect, PolicyRef
from carnet_policy.errors import PolicyError
from carnet_policy.history import HistoryRule, read_history
from carnet_policy.marked import Marked
from carnet_policy.policy import Approvals, Policy, ToolRules
from carnet_policy.reading import Part
from carnet_policy.rule import Rule, read_rules
from carnet_policy.strictyaml import MAX_BYTES, load_yaml
from carnet_policy.warning import warnings_of

__all__ = ["from_mapping", "load", "loads"]

FIRST_ONLY = ("id", "version", "defaults", "approvals", "i_accept_fail_open")
KEYS = (*FIRST_ONLY, "catalog", "tools", "history")
MAX_FILES = 1000
MAX_TIMEOUT = 28800

_Value = TypeVar("_Value")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# JSON may hold characters that YAML does not: as escapes, both read them alike.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def load(paths: Sequence[Path] | Path) -> Policy:
    """The policy that these files form. Errors: PolicyError, also for a file that can not be read."""
    texts = []
    for path in [paths] if isinstance(paths, Path) else paths:
        try:
            if path.stat().st_size > MAX_BYTES:
                raise PolicyError(f"the file is larger than {MAX_BYTES} bytes; split it", str(path), 1, 1)
            texts.append((str(path), path.read_text("utf-8")))
        except OSError as error:
            raise PolicyError(f"can not be read: {error.strerror or error}; check path and rights", str(path)) from None
        except UnicodeDecodeError:
            raise PolicyError("is no UTF-8 text; save it as UTF-8", str(path), 1, 1) from None
    return loads(texts)


def from_mapping(mapping: Mapping[str, object], id: str = "policy") -> Policy:
    """The policy of plain values (dict, list, str, int, float, bool, None), as if they stood in one file."""
    content: dict[str, object] = {"id": id, **mapping}
    _check_plain(content, f"{id}.yaml", 0)
    text = json.dumps(content, ensure_ascii=False, indent=1)
    text = _UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
    return loads([(f"{id}.yaml", text)])


def loads(texts: Sequence[tuple[str, str]]) -> Policy:
    """The policy of (name, text) pairs in order. Errors: PolicyError with the place."""
    if not 0 < len(texts) <= MAX_FILES:
        raise PolicyError(f"a policy is made of 1 to {MAX_FILES} files, not {len(texts)}")
    documents = [load_yaml(text, name) for name, text in texts]
    roots = [_root(document) for document in documents]
    for root in roots[1:]:
        for key in FIRST_ONLY:
            if key in root:
                raise root[key].error(f"{key} belongs in the first file of a policy only; remove it here")
    first = _First(documents[0], roots[0])
    catalog = _catalog(roots)
    rules = _rules(roots)
    history = _history(roots, catalog)
    ref = PolicyRef(first.id, first.version, _digest(first.id, documents))
    return Policy(
        ref=ref,
        catalog=catalog,
        tools={tool: _sorted(found, ref) for tool, found in rules.items()},
        history=history,
        default=first.default,
        approvals=first.approvals,
        warnings=warnings_of(catalog, rules, history, first.default),
        texts=tuple((name, text) for name, text in texts),
        _bounding=_bounding(history, catalog, rules),
        _bounding_unsafe=tuple(rule for rule in history if rule.tool is None),
    )


def _root(document: Marked) -> Mapping[str, Part]:
    if document.value is None:
        raise document.error((), "the file is empty; write at least a version")
    return Part(document, document.value).mapping(KEYS)


class _First:
    """What only the first file says."""

    def __init__(self, document: Marked, root: Mapping[str, Part]) -> None:
        self.id = root["id"].text(128) if "id" in root else PurePath(document.name).stem
        if not _ID.fullmatch(self.id):
            raise document.error(("id",), f"{self.id!r} is no policy id; write id: with letters, digits, dot, dash")
        if "version" not in root:
            raise document.error((), "the policy has no version; add version: 1")
        self.version = root["version"].integer(0, (1 << 53) - 1)
        self.default = self._default(root)
        self.approvals = _approvals(root["approvals"]) if "approvals" in root else Approvals()

    @staticmethod
    def _default(root: Mapping[str, Part]) -> Effect:
        accepted = "i_accept_fail_open" in root and root["i_accept_fail_open"].boolean()
        if "defaults" not in root:
            return Effect.DENY
        given = root["defaults"].mapping(("decision",))
        if "decision" not in given:
            raise root["defaults"].error("defaults has no decision; write decision: deny")
        effect = Effect(given["decision"].word_of([str(word) for word in Effect]))
        if effect is not Effect.DENY and not accepted:
            raise given["decision"].error(
                f"the default {effect} lets through what no rule names; write deny, or add i_accept_fail_open: true"
            )
        return effect


def _approvals(part: Part) -> Approvals:
    given = part.mapping(("timeout", "on_denial", "approvers"))
    on_denial = given["on_denial"].word_of(("revoke", "continue")) if "on_denial" in given else "revoke"
    return Approvals(
        timeout=given["timeout"].integer(1, MAX_TIMEOUT) if "timeout" in given else 120,
        on_denial="continue" if on_denial == "continue" else "revoke",
        approvers=given["approvers"].words() if "approvers" in given else frozenset(),
    )


def _catalog(roots: Sequence[Mapping[str, Part]]) -> dict[str, ToolFacts] | None:
    found: dict[str, ToolFacts] | None = None
    for root in roots:
        if "catalog" in root:
            found = {} if found is None else found
            _merge(found, read_catalog(root["catalog"]), root["catalog"])
    return found


def _rules(roots: Sequence[Mapping[str, Part]]) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for root in roots:
        if "tools" in root:
            part = root["tools"]
            tools = part.mapping()
            for name, entry in tools.items():
                Part(entry.document, name, entry.path).tool()
            _merge(found, {name: read_rules(name, entry) for name, entry in tools.items()}, part)
    return found


def _merge(into: dict[str, _Value], more: dict[str, _Value], part: Part) -> None:
    for name, value in more.items():
        if name in into:
            raise part.step(name, None).error(f"{name} is in two files of this policy; keep all of it in one")
        into[name] = value


def _history(roots: Sequence[Mapping[str, Part]], catalog: dict[str, ToolFacts] | None) -> tuple[HistoryRule, ...]:
    parts = [part for root in roots if "history" in root for part in root["history"].sequence()]
    safe = [name for name, facts in (catalog or {}).items() if not facts.irreversible]
    return read_history(parts, safe)


def _bounding(
    history: tuple[HistoryRule, ...], catalog: dict[str, ToolFacts] | None, rules: Mapping[str, object]
) -> dict[str, tuple[HistoryRule, ...]]:
    known = set(rules) | set(catalog or {}) | {rule.tool for rule in history if rule.tool is not None}
    found = {}
    for tool in known:
        unsafe = catalog is None or catalog.get(tool, UNKNOWN).irreversible
        found[tool] = tuple(rule for rule in history if rule.tool == tool or (rule.tool is None and unsafe))
    return found


def _sorted(rules: list[Rule], ref: PolicyRef) -> ToolRules:
    reasons = {
        Effect.ALLOW: ("policy_allow", "allows this call"),
        Effect.DENY: ("policy_deny", "denies this call"),
        Effect.REQUIRE_APPROVAL: ("policy_approval", "asks for an approval"),
    }
    pairs = []
    for rule in rules:
        code, words = reasons[rule.effect]
        pairs.append((rule, Decision(rule.effect, code, rule.reason or f"{rule.name} {words}", rule.name, ref)))
    by_effect = {effect: tuple(pair for pair in pairs if pair[0].effect is effect) for effect in Effect}
    return ToolRules(tuple(rules), by_effect[Effect.DENY], by_effect[Effect.REQUIRE_APPROVAL], by_effect[Effect.ALLOW])


def _digest(id: str, documents: Sequence[Marked]) -> str:
    first = {**cast(dict[str, object], documents[0].value), "id": id}
    content = [first, *(document.value for document in documents[1:])]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(b"carnet-policy-1\0" + text.encode()).hexdigest()


def _check_plain(value: object, name: str, depth: int) -> None:
    if depth > 32:
        raise PolicyError("the mapping is nested more than 32 deep; flatten it", name)
    if type(value) is dict:
        if not all(type(key) is str for key in value):
            raise PolicyError("every key must be a string", name)
        for inner in value.values():
            _check_plain(inner, name, depth + 1)
    elif type(value) is list:
        for inner in value:
            _check_plain(inner, name, depth + 1)
    elif (type(value) is float and not isfinite(value)) or (type(value) is int and value.bit_length() > 1024):
        raise PolicyError("a number is not finite or has more than 1024 bits; use a smaller one", name)
    elif type(value) not in (str, int, float, bool, type(None)):
        raise PolicyError(
            f"a {type(value).__name__} is no plain value; use dict, list, str, int, float, bool or None", name
        )
