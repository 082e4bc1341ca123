"""The audit chain: links by SHA-256, checkpoints signed by the broker's key, and the check that finds any tampering."""

import hmac
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from anyio import to_thread

from carnet.audit import GENESIS, Record, canonical, link
from carnet.reasons import Reason, Refusal
from carnet.token.gate import open_token, parse_object, split
from carnet.token.names import TYP_CHECKPOINT
from carnet.token.sign import sign
from carnet_broker.core.registry import Role
from carnet_broker.core.rows import Checkpoint
from carnet_broker.service.context import Context
from carnet_broker.service.paging import walk
from carnet_broker.service.permitting import permitted
from carnet_broker.service.principals import Principal
from carnet_broker.service.views import AuditCheck
from carnet_broker.store.base import Index, Where
from carnet_broker.store.codec import Corrupt

__all__ = ["export", "seal", "verify_audit"]

_BATCH = 500
_BATCHES = 40  # in one go


async def seal(ctx: Context, tenant: str) -> int:
    """Link what is new and sign the head. How many records were sealed; 0 also when another sealer was first."""
    sealed = 0
    for _ in range(_BATCHES):
        done = await _seal_batch(ctx, tenant)
        sealed += done
        if done < _BATCH:
            break
    return sealed


async def _seal_batch(ctx: Context, tenant: str) -> int:
    before, after, records = await ctx.store.unsealed(tenant, _BATCH)
    if not records:
        return 0
    links = await to_thread.run_sync(_links, before, records)  # hashing must not hold up who waits for an answer
    last, head = links[-1]
    now = await ctx.store.now()
    body = {"tenant": tenant, "seq": last, "head": head, "at": now}
    signature = sign(body | {"mac": _mac(ctx, body)}, ctx.keys.active, TYP_CHECKPOINT)
    if isinstance(signature, Refusal):
        raise ValueError(f"a checkpoint could not be signed: {signature}")
    checkpoint = Checkpoint(tenant=tenant, seq=last, head=head, at=now, signature=signature)
    return len(records) if await ctx.store.seal(tenant, after, links, checkpoint) else 0


def _links(head: str, records: Sequence[Record]) -> list[tuple[int, str]]:
    links: list[tuple[int, str]] = []
    for record in records:
        head = link(head, record)
        links.append((record.seq, head))
    return links


async def export(ctx: Context, who: Principal) -> AsyncIterator[Mapping[str, Any]] | Refusal:
    """Records in order, each with the hash that links it to the one before, then the checkpoints."""
    registry = permitted(ctx, who, Role.VIEWER)
    return registry if isinstance(registry, Refusal) else _lines(ctx, who.tenant)


async def verify_audit(ctx: Context, who: Principal) -> AuditCheck | Refusal:
    """Read every record again and compare with every checkpoint; the first problem is told."""
    registry = permitted(ctx, who, Role.VIEWER)
    if isinstance(registry, Refusal):
        return registry
    sealed, head, checkpoints = await _sealed(ctx, who.tenant)
    count, problem = await _chain_problem(ctx, who.tenant, {row.seq: row for row in checkpoints})
    if (sealed, head) != ((checkpoints[-1].seq, checkpoints[-1].head) if checkpoints else (0, GENESIS)):
        problem = problem or f"the checkpoint of the last sealed record, {sealed}, is missing"
    return AuditCheck(
        ok=problem is None, records=count, sealed=sealed, unsealed=max(0, count - sealed), problem=problem
    )


async def _sealed(ctx: Context, tenant: str) -> tuple[int, str, list[Checkpoint]]:
    """How far the records are sealed, their head there, and all checkpoints, as of one moment: read again when the
    sealer was at work in between, since its new checkpoint would look like a missing one."""
    while True:
        head, sealed, _ = await ctx.store.unsealed(tenant, 1)
        checkpoints = [row async for row in walk(ctx.store, Checkpoint, tenant, Where(index=Index.CHECKPOINTS))]
        after, _, _ = await ctx.store.unsealed(tenant, 1)
        if after == head:
            return sealed, head, checkpoints


async def _chain_problem(ctx: Context, tenant: str, waiting: dict[int, Checkpoint]) -> tuple[int, str | None]:
    """How many records there are, and the first thing that is wrong with them."""
    head, count, problem = GENESIS, 0, None
    try:
        async for record in walk(ctx.store, Record, tenant, Where(index=Index.RECORDS)):
            count += 1
            head = link(head, record)
            gap = f"record {count} is missing: {record.seq} stands in its place" if record.seq != count else None
            checkpoint = waiting.pop(record.seq, None)
            problem = problem or gap or (None if checkpoint is None else _against(ctx, checkpoint, head))
    except Corrupt as fault:
        return count, problem or f"a record after {count} cannot be read: {fault}"
    if waiting:
        problem = problem or f"the tail is cut: a checkpoint covers record {max(waiting)}, the last one is {count}"
    return count, problem


def _mac(ctx: Context, body: Mapping[str, Any]) -> str:
    """Under a secret that outlives every signing key, so that a checkpoint can be checked after its key is retired."""
    key = ctx.keys.secret("audit-checkpoint", str(body["tenant"]))
    return hmac.new(key, canonical(body), sha256).hexdigest()


def _against(ctx: Context, checkpoint: Checkpoint, head: str) -> str | None:
    """Why the checkpoint does not vouch for the records up to it."""
    body = {"tenant": checkpoint.tenant, "seq": checkpoint.seq, "head": checkpoint.head, "at": checkpoint.at}
    if _payload(ctx, checkpoint.signature) != body | {"mac": _mac(ctx, body)}:
        return f"the checkpoint at record {checkpoint.seq} is not one that this broker signed"
    if not hmac.compare_digest(checkpoint.head, head):
        return f"a record up to {checkpoint.seq} was edited, swapped or removed: the chain has another head"
    return None


def _payload(ctx: Context, signature: str) -> Mapping[str, Any] | None:
    """What a checkpoint states. Signed by a key that is no longer published, its MAC must speak for it alone."""
    opened = open_token(signature, ctx.keys.keyset(), typ=TYP_CHECKPOINT)
    if not isinstance(opened, Refusal):
        return opened[1]
    parts = split(signature)
    if opened.reason is not Reason.TOKEN_KEY or isinstance(parts, Refusal):
        return None
    stated = parse_object(parts.payload, "payload")
    return None if isinstance(stated, Refusal) else stated


async def _lines(ctx: Context, tenant: str) -> AsyncIterator[Mapping[str, Any]]:
    head = GENESIS
    async for record in walk(ctx.store, Record, tenant, Where(index=Index.RECORDS)):
        head = link(head, record)
        yield {"record": asdict(record), "link": head}
    async for checkpoint in walk(ctx.store, Checkpoint, tenant, Where(index=Index.CHECKPOINTS)):
        yield {"checkpoint": asdict(checkpoint)}
