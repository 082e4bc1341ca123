"""The one catalogue of refusals: code, sentence, who may see it, whether a retry can help, and the HTTP status.

Audit, HTTP, SDK, CLI and documentation all read this table, so a code means the same everywhere. A refusal is a value;
exceptions are for bugs and broken I/O.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

__all__ = ["CATALOGUE", "Entry", "Reason", "Refusal", "Seen"]


class Seen(StrEnum):
    """Who is told the code. Everybody else is told `hidden_as` of the entry, so that a probe learns nothing."""

    CALLER = "caller"
    AUDIT = "audit"


class Entry(NamedTuple):
    sentence: str
    status: int
    retry: bool = False
    seen: Seen = Seen.CALLER


class Reason(StrEnum):
    # token: genuine and alive?
    TOKEN_MISSING = "token_missing"
    TOKEN_MALFORMED = "token_malformed"
    TOKEN_SIZE = "token_size"
    TOKEN_DUPLICATE = "token_duplicate"
    TOKEN_HEADER = "token_header"
    TOKEN_TYP = "token_typ"
    TOKEN_ALG = "token_alg"
    TOKEN_KEY = "token_key"
    TOKEN_SIGNATURE = "token_signature"
    TOKEN_CLAIM = "token_claim"
    TOKEN_ISS = "token_iss"
    TOKEN_AUD = "token_aud"
    TOKEN_EXPIRED = "token_expired"
    TOKEN_NOT_YET = "token_not_yet_valid"
    TOKEN_LIFETIME = "token_lifetime"
    TOKEN_CHAIN = "token_chain"
    TOKEN_PROOF = "token_proof"
    ROOT_TOKEN = "root_token"
    TOKEN_ENDED = "token_ended"
    # what the caller is and may do
    CLIENT_AUTH = "invalid_client"
    NOT_FOUND = "not_found"
    FORBIDDEN = "forbidden"
    OPERATOR_AUTH = "operator_authentication"
    FRESH_PROOF = "fresh_proof_required"
    SELF_APPROVAL = "self_approval"
    NOT_APPROVER = "not_an_approver"
    # derivation
    TASK_INVALID = "task_invalid"
    TARGET_NOT_ALLOWED = "target_not_allowed"
    PAYLOAD_INVALID = "payload_invalid"
    SCOPE_NOT_GRANTABLE = "invalid_scope"
    CEILING_INVALID = "ceiling_invalid"
    DEPTH_EXCEEDED = "depth_exceeded"
    TTL_TOO_SHORT = "ttl_too_short"
    TENANT_MISMATCH = "tenant_mismatch"
    BINDING_REQUIRED = "binding_required"
    HOST_UNKNOWN = "invalid_target"
    TOKEN_TOO_LARGE = "token_too_large"
    # clear: does the token cover the call?
    SCOPE_MISSING = "scope_missing"
    CEILING_EXCEEDED = "ceiling_exceeded"
    MAX_CALLS = "max_calls"
    RESOURCE_LIMIT = "resource_limit"
    RESOURCE_UNREADABLE = "resource_unreadable"
    WRONG_HOST = "wrong_host"
    UNGUARDED_ROUTE = "unguarded_route"
    # policy
    POLICY_ALLOW = "policy_allow"
    POLICY_APPROVAL = "policy_approval"
    POLICY_DENY = "policy_deny"
    NO_MATCH = "no_match"
    UNKNOWN_TOOL = "unknown_tool"
    HISTORY_LIMIT = "history_limit"
    HISTORY_VALUE = "history_value"
    HISTORY_RECENT = "history_recent"
    IRREVERSIBLE_FLOOR = "irreversible_floor"
    POLICY_ERROR = "policy_error"
    POLICY_CHANGED = "policy_changed"
    ARGUMENTS_INVALID = "arguments_invalid"
    ARGUMENTS_DUPLICATE = "arguments_duplicate"
    ARGUMENTS_TOO_LARGE = "arguments_too_large"
    # approvals
    APPROVAL_PENDING = "approval_pending"
    APPROVED = "approved"
    APPROVAL_DENIED = "approval_denied"
    APPROVAL_TIMED_OUT = "approval_timed_out"
    APPROVAL_WITHDRAWN = "approval_withdrawn"
    APPROVAL_SUPERSEDED = "approval_superseded"
    APPROVAL_MISMATCH = "approval_mismatch"
    APPROVAL_SPENT = "approval_spent"
    APPROVAL_LAPSED = "approval_lapsed"
    APPROVAL_EXPIRED = "approval_expired"
    ALREADY_ANSWERED = "already_answered"
    DENIED_BEFORE = "denied_before"
    TOO_MANY_PENDING = "too_many_pending"
    TOO_LATE = "too_late"
    # ends
    COMPLETED = "completed"
    EXPIRED = "expired"
    RUN_CLOSED = "run_closed"
    REVOKED = "revoked"
    # calls and records
    ALREADY_DISPATCHED = "already_dispatched"
    IDEMPOTENCY_MISMATCH = "idempotency_mismatch"
    CALL_STATE = "call_state"
    RUN_FULL = "run_full"
    NO_SINK = "no_record_sink"
    LOST_OUTCOME = "outcome_unknown"
    # can't be known now
    STALE = "revocation_state_stale"
    NOT_READY = "guard_not_ready"
    UNAVAILABLE = "unavailable"
    CONTENDED = "contended"
    TOO_MANY_REQUESTS = "too_many_requests"
    TOO_MANY_RUNS = "too_many_runs"
    # requests
    REQUEST_INVALID = "invalid_request"
    REQUEST_TOO_LARGE = "request_too_large"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    GRANT_UNSUPPORTED = "unsupported_grant_type"
    INTERNAL = "internal_error"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A no: which reason, and one sentence that an operator understands. Never truthy or falsy: match on the type."""

    reason: Reason
    detail: str = ""

    def __bool__(self) -> bool:
        raise TypeError("a Refusal has no truth value: use isinstance")

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.detail or CATALOGUE[self.reason].sentence}"


_T = 401
CATALOGUE: dict[Reason, Entry] = {
    Reason.TOKEN_MISSING: Entry("No token was presented.", _T),
    Reason.TOKEN_MALFORMED: Entry("The token is not a well-formed compact JWS.", _T, seen=Seen.AUDIT),
    Reason.TOKEN_SIZE: Entry("The token exceeds the size limit of 4096 bytes; it was not parsed.", _T, seen=Seen.AUDIT),
    Reason.TOKEN_DUPLICATE: Entry("The token's JSON names a member twice (duplicate).", _T, seen=Seen.AUDIT),
    Reason.TOKEN_HEADER: Entry("The token header has members that are not allowed or lacks one.", _T, seen=Seen.AUDIT),
    Reason.TOKEN_TYP: Entry("The token is of another kind (typ).", _T, seen=Seen.AUDIT),
    Reason.TOKEN_ALG: Entry("The token's alg is not the algorithm of its key.", _T, seen=Seen.AUDIT),
    Reason.TOKEN_KEY: Entry("The token names a key (kid) that the issuer does not publish.", _T, seen=Seen.AUDIT),
    Reason.TOKEN_SIGNATURE: Entry("The token's signature does not verify.", _T, seen=Seen.AUDIT),
    Reason.TOKEN_CLAIM: Entry("A claim is missing, unknown or of the wrong type.", _T, seen=Seen.AUDIT),
    Reason.TOKEN_ISS: Entry("The token is from another issuer (iss).", _T, seen=Seen.AUDIT),
    Reason.TOKEN_AUD: Entry("The token is for another audience (aud).", _T, seen=Seen.AUDIT),
    Reason.TOKEN_EXPIRED: Entry("The token's exp has passed.", _T),
    Reason.TOKEN_NOT_YET: Entry("The token is not valid yet (nbf).", _T),
    Reason.TOKEN_LIFETIME: Entry("The token lives longer than its level allows (exp - iat).", _T, seen=Seen.AUDIT),
    Reason.TOKEN_CHAIN: Entry("The delegation chain of the token is not one of this broker.", _T, seen=Seen.AUDIT),
    Reason.TOKEN_PROOF: Entry("The proof of possession is missing or wrong.", _T),
    Reason.ROOT_TOKEN: Entry("A run's root token calls no tool: spawn a delegation for it.", _T),
    Reason.TOKEN_ENDED: Entry("The token's delegation has ended.", _T),
    Reason.CLIENT_AUTH: Entry("Client authentication failed.", 401),
    Reason.NOT_FOUND: Entry("There is nothing of this id for this caller.", 404),
    Reason.FORBIDDEN: Entry("The caller's role or kind may not do this.", 403),
    Reason.OPERATOR_AUTH: Entry("Operator authentication failed; log in with `carnet login`.", 401),
    Reason.FRESH_PROOF: Entry("Approving needs a fresh proof of the person: type the passphrase.", 403),
    Reason.SELF_APPROVAL: Entry("The requester, an agent of the chain or its owner cannot approve.", 403),
    Reason.NOT_APPROVER: Entry("The policy names other approvers for this.", 403),
    Reason.TASK_INVALID: Entry("The task needs touches_pii, touches_secrets, reversible, resource_count, typed.", 400),
    Reason.TARGET_NOT_ALLOWED: Entry("The target is not among the agent's callable_agents.", 403),
    Reason.PAYLOAD_INVALID: Entry("The payload does not fit the target's handoff schema.", 400),
    Reason.SCOPE_NOT_GRANTABLE: Entry("A tool was named that the parent may not give or the target may not hold.", 403),
    Reason.CEILING_INVALID: Entry("A ceiling cannot be compared with the parent's.", 400),
    Reason.DEPTH_EXCEEDED: Entry("A delegated child cannot delegate further (depth).", 403),
    Reason.TTL_TOO_SHORT: Entry("Less than 5 s of life would be left.", 409),
    Reason.TENANT_MISMATCH: Entry("The tenant comes from the credential and cannot be named.", 400),
    Reason.BINDING_REQUIRED: Entry("At this level the token must be bound to a key.", 400),
    Reason.HOST_UNKNOWN: Entry("No host of this name serves a tool of the delegation.", 400),
    Reason.TOKEN_TOO_LARGE: Entry("The token would exceed 4096 bytes: name fewer tools or smaller ceilings.", 400),
    Reason.SCOPE_MISSING: Entry("The token's scope does not cover this tool.", 403),
    Reason.CEILING_EXCEEDED: Entry("The arguments exceed the delegation's ceiling for this tool.", 403),
    Reason.MAX_CALLS: Entry("The delegation's max_calls for this tool is used up.", 403),
    Reason.RESOURCE_LIMIT: Entry("The delegation has touched as many resources as its task stated.", 403),
    Reason.RESOURCE_UNREADABLE: Entry("The argument that names the resource is missing or not an id.", 403),
    Reason.WRONG_HOST: Entry("The tool is not served by this host.", 403),
    Reason.UNGUARDED_ROUTE: Entry("No guard owns this endpoint.", 403),
    Reason.POLICY_ALLOW: Entry("A policy rule allows the call.", 200),
    Reason.POLICY_APPROVAL: Entry("A policy rule asks for a person's approval.", 403),
    Reason.POLICY_DENY: Entry("A policy rule denies the call.", 403),
    Reason.NO_MATCH: Entry("No policy rule matches the call: the default denies it.", 403),
    Reason.UNKNOWN_TOOL: Entry("The policy does not know this tool (unknown_tool): the default denies it.", 403),
    Reason.HISTORY_LIMIT: Entry("A history rule of the policy bounds the run.", 403),
    Reason.HISTORY_VALUE: Entry("A value that a history rule adds up is missing or not a number >= 0.", 403),
    Reason.HISTORY_RECENT: Entry("A history rule is younger than the run, so a person decides.", 403),
    Reason.IRREVERSIBLE_FLOOR: Entry("An irreversible tool needs approval unless the envelope pins it.", 403),
    Reason.POLICY_ERROR: Entry("The policy could not be evaluated.", 403),
    Reason.POLICY_CHANGED: Entry("The policy changed before the tool ran.", 403, retry=True),
    Reason.ARGUMENTS_INVALID: Entry("The arguments are malformed: no plain JSON values within the limits.", 400),
    Reason.ARGUMENTS_DUPLICATE: Entry("Arguments name a member twice (duplicate).", 400),
    Reason.ARGUMENTS_TOO_LARGE: Entry("The arguments exceed 64 KiB or depth 16.", 400),
    Reason.APPROVAL_PENDING: Entry("Nobody has answered yet; ask again with the same arguments.", 403, retry=True),
    Reason.APPROVED: Entry("Approved by a person, or by the policy where no person is needed.", 200),
    Reason.APPROVAL_DENIED: Entry("A person denied the approval.", 403),
    Reason.APPROVAL_TIMED_OUT: Entry("Nobody answered in time; that is no person's no.", 403),
    Reason.APPROVAL_WITHDRAWN: Entry("The approval was withdrawn.", 403),
    Reason.APPROVAL_SUPERSEDED: Entry("The policy changed while the question was open; ask again.", 403, retry=True),
    Reason.APPROVAL_MISMATCH: Entry("The named approval is for another call.", 403),
    Reason.APPROVAL_SPENT: Entry("The named approval was used already.", 403),
    Reason.APPROVAL_LAPSED: Entry("The approval ended with its delegation.", 403),
    Reason.APPROVAL_EXPIRED: Entry("The answer came after the deadline.", 409),
    Reason.ALREADY_ANSWERED: Entry("Somebody answered before.", 409),
    Reason.DENIED_BEFORE: Entry("A person denied this before in the run; it is not asked again.", 403),
    Reason.TOO_MANY_PENDING: Entry("Too many questions wait for an answer.", 403, retry=True),
    Reason.TOO_LATE: Entry("The call had begun.", 409),
    Reason.COMPLETED: Entry("The delegation was ended by its parent.", 401),
    Reason.EXPIRED: Entry("The delegation's time is over.", 401),
    Reason.RUN_CLOSED: Entry("The run was closed.", 401),
    Reason.REVOKED: Entry("Revoked.", 401),
    Reason.ALREADY_DISPATCHED: Entry("The call of this key has begun; it is not run again.", 409),
    Reason.IDEMPOTENCY_MISMATCH: Entry("The idempotency key was used for another request.", 409),
    Reason.CALL_STATE: Entry("The call is not in a state that allows this.", 409),
    Reason.RUN_FULL: Entry("The run has reached its cap of calls.", 403),
    Reason.NO_SINK: Entry("No record of the call could be written, so it did not run.", 503),
    Reason.LOST_OUTCOME: Entry("Nobody reported how the call ended.", 500),
    Reason.STALE: Entry("What is revoked is not known freshly enough; nothing runs until it is.", 503, retry=True),
    Reason.NOT_READY: Entry("The guard has not loaded policy, keys and revocations yet.", 503, retry=True),
    Reason.UNAVAILABLE: Entry("The broker or its store is unavailable; nothing ran.", 503, retry=True),
    Reason.CONTENDED: Entry("Too many writers at once; nothing was changed.", 503, retry=True),
    Reason.TOO_MANY_REQUESTS: Entry("Too many requests.", 429, retry=True),
    Reason.TOO_MANY_RUNS: Entry("The client has too many open runs.", 429, retry=True),
    Reason.REQUEST_INVALID: Entry("The request is malformed.", 400),
    Reason.REQUEST_TOO_LARGE: Entry("The request exceeds a size limit.", 413),
    Reason.METHOD_NOT_ALLOWED: Entry("The path knows other methods.", 405),
    Reason.GRANT_UNSUPPORTED: Entry("The grant type is not supported.", 400),
    Reason.INTERNAL: Entry("The broker met a fault of its own; nothing was allowed.", 500),
}
