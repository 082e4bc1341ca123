"""The smaller writes beside `commit`, and the chores; each runs in the writer's transaction."""

import secrets
import sqlite3
from collections.abc import Sequence

from carnet_broker.core.rows import Checkpoint
from carnet_broker.store.base import Unavailable

__all__ = ["chore", "note_guard", "once", "renew_epoch", "seal"]

_FORGET = 500  # expired keys forgotten per chore and table


def once(conn: sqlite3.Connection, now: int, tenant: str, key: str, until: int, limit: int) -> bool:
    """True for the first to bring the key. A key whose `until` has passed proves nothing and is never new."""
    if until <= now:
        return False
    old = conn.execute("SELECT until FROM once WHERE tenant = ? AND key = ?", (tenant, key)).fetchone()
    if old is not None:
        if old[0] > now:
            return False
        conn.execute("UPDATE once SET until = ? WHERE tenant = ? AND key = ?", (until, tenant, key))
        return True
    held = conn.execute(
        "INSERT INTO tenant (tenant, onces) VALUES (?, 1) ON CONFLICT DO UPDATE SET onces = onces + 1 RETURNING onces",
        (tenant,),
    ).fetchone()[0]
    if held > limit:
        raise Unavailable("The memory of used keys is full; nothing new is accepted until old ones expire.")
    conn.execute("INSERT INTO once (tenant, key, until) VALUES (?, ?, ?)", (tenant, key, until))
    return True


def note_guard(conn: sqlite3.Connection, now: int, tenant: str, guard: str, seq: int) -> None:
    conn.execute(
        "INSERT INTO guard (tenant, guard, seq, at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET seq = excluded.seq, at = excluded.at",
        (tenant, guard, seq, now),
    )


def seal(
    conn: sqlite3.Connection, tenant: str, after: int, links: Sequence[tuple[int, str]], checkpoint: Checkpoint
) -> bool:
    """Set the links of the records after `after`. ValueError when they are not the next ones in order."""
    numbers = [seq for seq, _ in links]
    if not links or numbers != list(range(after + 1, after + 1 + len(links))):
        raise ValueError("links must follow each other from the sealed head on")
    if (checkpoint.tenant, checkpoint.seq, checkpoint.head) != (tenant, *links[-1]):
        raise ValueError("the checkpoint is not the last link")
    found = conn.execute("SELECT sealed FROM tenant WHERE tenant = ?", (tenant,)).fetchone()
    if (found[0] if found else 0) != after:
        return False
    sql = "UPDATE record SET link = ? WHERE tenant = ? AND seq = ?"
    if conn.executemany(sql, [(head, tenant, seq) for seq, head in links]).rowcount != len(links):
        raise ValueError("a link names a record that is not there")
    conn.execute(
        "INSERT INTO checkpoint (tenant, seq, head, at, signature) VALUES (?, ?, ?, ?, ?)",
        (tenant, checkpoint.seq, checkpoint.head, checkpoint.at, checkpoint.signature),
    )
    conn.execute("UPDATE tenant SET sealed = ?, head = ? WHERE tenant = ?", (*links[-1], tenant))
    return True


def renew_epoch(conn: sqlite3.Connection) -> str:
    epoch = secrets.token_hex(16)
    conn.execute("UPDATE meta SET epoch = ?", (epoch,))
    return epoch


def chore(conn: sqlite3.Connection, now: int) -> None:
    """Store the clock's mark and forget a few expired keys, if there is anything to do."""
    mark = conn.execute("SELECT high_water FROM meta").fetchone()[0]
    old = conn.execute(
        "SELECT EXISTS (SELECT 1 FROM once WHERE until <= :n) OR EXISTS (SELECT 1 FROM idempotency WHERE until <= :n)",
        {"n": now},
    ).fetchone()[0]
    if now - mark < 5 and not old:  # a mark a few seconds old is within every leeway: not worth a write when idle
        return
    conn.execute("BEGIN IMMEDIATE")
    conn.execute("UPDATE meta SET high_water = max(high_water, ?)", (now,))
    conn.execute(
        "DELETE FROM idempotency WHERE n IN (SELECT n FROM idempotency WHERE until <= ? ORDER BY until LIMIT ?)",
        (now, _FORGET),
    )
    gone = conn.execute(
        "DELETE FROM once WHERE n IN (SELECT n FROM once WHERE until <= ? ORDER BY until LIMIT ?) RETURNING tenant",
        (now, _FORGET),
    ).fetchall()
    conn.executemany("UPDATE tenant SET onces = onces - 1 WHERE tenant = ?", gone)
    conn.execute("COMMIT")
