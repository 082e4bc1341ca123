"""The JSON bodies and query parameters of all doors. Sizes here bound what a use case must look at."""

from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt

from carnet_broker.core.registry import MAX_RUN_TTL
from carnet_broker.http.door import Body, Query
from carnet_broker.service.paging import MOST

__all__ = [
    "AcknowledgeBody",
    "AnswerBody",
    "ApprovalsQuery",
    "AuditQuery",
    "CallBody",
    "DelegationsQuery",
    "EndBody",
    "FeedQuery",
    "OutcomeBody",
    "PageQuery",
    "RecordsBody",
    "RevocationBody",
    "SessionBody",
    "SpawnBody",
    "TokensBody",
    "WaitQuery",
]

Name = Annotated[str, Field(min_length=1, max_length=128)]
Text = Annotated[str, Field(max_length=2000)]
Secret = Annotated[str, Field(min_length=1, max_length=1024)]
Instance = Annotated[str, Field(pattern=r"^[A-Za-z0-9]{1,32}$")]
Cursor = Annotated[str, Field(min_length=1, max_length=256)]
Count = Annotated[int, Field(ge=0, lt=2**53)]
Limit = Annotated[int, Field(ge=1, le=MOST)]
Wait = Annotated[float, Field(ge=0, le=50, allow_inf_nan=False)]
Time = Annotated[int, Field(ge=0, le=2**33)]


class SpawnBody(Body):
    target: Name
    task: dict[str, Any]
    payload: Any = None
    ttl: Annotated[StrictInt, Field(ge=1, le=MAX_RUN_TTL)] | None = None
    hosts: Annotated[tuple[Name, ...], Field(max_length=64, strict=False)] = ()
    ceilings: Annotated[dict[str, Any], Field(default_factory=dict)]


class TokensBody(Body):
    hosts: Annotated[list[Name], Field(min_length=1, max_length=64)] | None = None


class EndBody(Body):
    reason: Literal["completed", "run_closed"] | None = None


class WaitQuery(Query):
    wait: Wait = 0


class CallBody(Body):
    token: Annotated[str, Field(min_length=1, max_length=4096)]
    tool: Name
    args: dict[str, Any]
    preview: bool = False
    approval_id: Annotated[str, Field(max_length=64)] | None = None


class OutcomeBody(Body):
    outcome: Literal["done", "failed", "unknown"]
    detail: Text = ""


class RecordsBody(Body):
    journal: Annotated[str, Field(pattern=r"^[A-Za-z0-9]{1,64}$")]
    first: Count
    lines: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=1000)]


class FeedQuery(Query):
    epoch: Annotated[str, Field(max_length=64)] = ""
    after: Count = 0
    wait: Annotated[float, Field(ge=0, le=0.4, allow_inf_nan=False)] = 0
    system_epoch: Annotated[str, Field(max_length=64)] = ""
    system_after: Count = 0
    instance: Instance | None = None


class AcknowledgeBody(Body):
    instance: Instance
    epoch: Annotated[str, Field(max_length=64)]
    seq: Count


class SessionBody(Body):
    tenant: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,63}$")] | None = None
    operator: Name
    passphrase: Secret


class AnswerBody(Body):
    verdict: Literal["approve", "deny", "withdraw"]
    note: Text = ""
    passphrase: Secret | None = None


class RevocationBody(Body):
    mark: Annotated[str, Field(min_length=3, max_length=300)]
    until: Time | Literal["forever"] | None = None
    reason: Annotated[str, Field(min_length=1, max_length=500)]
    dry_run: bool = False


class PageQuery(Query):
    limit: Limit = 50
    after: Cursor | None = None


class ApprovalsQuery(PageQuery):
    state: Literal["pending", "all"] = "pending"


class DelegationsQuery(PageQuery):
    state: Literal["active", "pending", "ended", "all"] = "all"
    run: Name | None = None
    agent: Name | None = None


class AuditQuery(PageQuery):
    run: Name | None = None
    delegation: Name | None = None
    agent: Name | None = None
    tool: Name | None = None
    call: Name | None = None
    decision: Name | None = None
    reason: Name | None = None
    trace: Name | None = None
    since: Time | None = None
    until: Time | None = None
