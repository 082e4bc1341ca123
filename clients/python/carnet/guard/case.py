"""One attempt at a call: who asks, with which token, for which tool and arguments; what of it is local."""

from dataclasses import dataclass
from typing import Final

from carnet.current import Holder
from carnet.guard.binding import Frozen
from carnet.guard.book import Book
from carnet.guard.state import State
from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet.token.clear import clear
from carnet.token.verify import verify

__all__ = ["Case", "admit", "covered", "is_local", "proven", "verified"]


@dataclass(slots=True, eq=False, repr=False)  # Final and not `frozen`: made for each call, and five times as quick
class Case:
    """A call whose token is genuine and alive. at: the broker's Unix time, generation: the guard's state, when that was
    found."""

    tool: Final[str]
    frozen: Final[Frozen]
    holder: Final[Holder]
    token: Final[str]
    claims: Final[Claims]
    book: Final[Book]
    at: Final[int]
    generation: Final[int]

    @property
    def level(self) -> int:
        return self.claims.delegation.level

    def __repr__(self) -> str:
        return f"<Case {self.tool} of {self.claims.delegation.id}>"


def verified(state: State, token: str) -> Claims | Refusal:
    """The claims of a token for this guard's host; refused too while the guard doesn't know what is revoked."""
    found = _verified(state, token)
    return found if isinstance(found, Refusal) else found[0]


def _verified(state: State, token: str) -> tuple[Claims, int] | Refusal:
    """The claims, and the broker's Unix time at which they were alive."""
    cache, mono = state.cache, state.clock.mono()
    known = Refusal(Reason.NOT_READY) if cache is None else cache.known(token, keys=state.keys)
    if isinstance(known, Refusal):
        refusal = state.lacking(1, mono)
        return known if refusal is None else refusal
    # First whether we know enough, then what we know: see `State.lacking`.
    refusal = state.lacking(known.claims.delegation.level, mono)
    if refusal is not None:
        return refusal
    now = state.freshness.wall(mono)
    refusal = known.refused(state.keys, state.feed.tenant.until, now)
    return (known.claims, now) if refusal is None else refusal


def proven(state: State, token: str) -> tuple[Book, Claims] | None:
    """Whose token it is that was refused: a genuine one of this tenant, in its time, for this host or a run's root.
    None where nobody is proven; such a refusal can be no record of the tenant's."""
    book, cache, now = state.book, state.cache, state.now()
    if book is None or cache is None:
        return None
    claims = cache.verify(token, keys=state.keys, revoked={}, now=now)
    if isinstance(claims, Refusal) and claims.reason is Reason.ROOT_TOKEN:
        claims = verify(token, keys=state.keys, issuer=book.issuer, audience=book.issuer, revoked={}, now=now)
    return None if isinstance(claims, Refusal) or claims.tenant != book.tenant else (book, claims)


def admit(state: State, tool: str, frozen: Frozen, holder: Holder, token: str) -> Case | Refusal:
    """Verify: the case, or why there is none."""
    generation = state.generation
    found = _verified(state, token)
    if isinstance(found, Refusal):
        return found
    book = state.book
    if book is None:
        return Refusal(Reason.NOT_READY)
    return Case(tool, frozen, holder, token, found[0], book, found[1], generation)


def covered(state: State, case: Case) -> Refusal | None:
    """Clear: None when scope and ceilings cover the call and the tool is this host's."""
    if case.tool not in case.book.tools:
        return Refusal(Reason.WRONG_HOST, f"host {case.book.host} does not serve {case.tool}")
    return clear(case.claims, case.tool, case.frozen.json, revoked=state.feed.tenant.until)


def is_local(case: Case) -> bool:
    """Whether the call may be decided in process. A function of policy, tool and token, never of arguments."""
    if case.tool not in case.book.local or case.level > 1:
        return False
    details = case.claims.authorization_details
    return not details or all("max_calls" not in entry for entry in details if case.tool in entry["actions"])
