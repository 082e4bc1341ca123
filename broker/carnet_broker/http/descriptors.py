"""How many connections the process can hold: each one is a file descriptor, and the store must never be left without.

Many systems start processes with a soft limit of 1,024 descriptors, fewer than a broker may have followers.
"""

import resource

__all__ = ["connections_that_fit"]

_OTHERS = 128  # the store, logs, configuration files, and what the runtime opens


def connections_that_fit(wanted: int) -> int:
    """Raise the soft limit as far as is needed and allowed; answer how many connections fit under it, at most `wanted`.
    At least one fits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _OTHERS
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, soft - _OTHERS))
