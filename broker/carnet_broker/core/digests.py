"""What an approval is bound to: SHA-256 over canonical JSON, so that nothing can be changed after a person saw it."""

import hashlib
from typing import Any

from carnet.audit import canonical
from carnet_broker.core.rows import Envelope

__all__ = ["envelope_digest", "envelope_document", "payload_digest"]


def envelope_document(envelope: Envelope) -> dict[str, Any]:
    """The envelope as it stands on the wire, in audit and in front of the approver."""
    return {
        "level": envelope.level,
        "tools": list(envelope.tools),
        "ceilings": envelope.ceilings,
        "credential_ttl_seconds": envelope.credential_ttl_seconds,
        "approval_required": envelope.approval_required,
        "resource_limit": envelope.resource_limit,
        "tenant": envelope.tenant,
        "trace_id": envelope.trace_id,
    }


def envelope_digest(
    *,
    run: str,
    parent: str,
    agent: str,
    envelope: Envelope,
    payload_sha256: str | None,
    policy_digest: str,
    jkt: str | None,
) -> str:
    """Hex digest of everything a delegation's approval covers. Ids and times of the single attempt stay out of it, and
    so does the trace id: the same request again has the same digest, which is how a repeat is recognised."""
    bound = envelope_document(envelope)
    del bound["trace_id"]
    facts = {
        "kind": "carnet-envelope-1",
        "run": run,
        "parent": parent,
        "agent": agent,
        "envelope": bound,
        "payload_sha256": payload_sha256,
        "policy": policy_digest,
        "jkt": jkt,
    }
    return hashlib.sha256(canonical(facts)).hexdigest()


def payload_digest(payload: Any) -> str:
    """Hex digest of a payload (parsed JSON). Raises ValueError for what is no JSON value."""
    return hashlib.sha256(canonical(payload)).hexdigest()
