"""Does the token cover this call? Scope, tools taken away since, and ceilings on arguments. `max_calls` and resource
limits outlive one call and are the broker's."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet.token.marks import Revoked, dead

if TYPE_CHECKING:
    from carnet_policy import Compiled

__all__ = ["clear"]


def clear(claims: Claims, tool: str, args: Mapping[str, Any], *, revoked: Revoked) -> Refusal | None:
    """None when the token covers the call. A ceiling fails closed when its argument is absent."""
    if claims.delegation.depth == 0:
        return Refusal(Reason.ROOT_TOKEN)
    carried = claims.tool_marks(tool)
    if carried is None:
        return Refusal(Reason.SCOPE_MISSING)
    mark = dead(carried, claims.iat, revoked)
    if mark is not None:
        return Refusal(Reason.REVOKED, f"{mark} is revoked")
    if not claims.authorization_details or tool not in claims.limits or _within(claims.limits[tool], args):
        return None
    return Refusal(Reason.CEILING_EXCEEDED)


def _within(ceiling: "Compiled | None", args: Mapping[str, Any]) -> bool:
    from carnet_policy import satisfies  # loaded only where a ceiling is judged

    return ceiling is not None and satisfies(ceiling, args)
