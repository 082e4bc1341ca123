"""A process with a guarded tool, for tests that kill it.

argv: URL, client, secret, host, journal, double, token, tool (`a:` before it = async).
"""

import asyncio
import os
import sys
from pathlib import Path

from carnet import Credential, Guard
from carnet.current import entered


class Holder:
    """A current child that is nothing but its token."""

    id, agent, level, expires_at, max_wait, trace = "dlg", "reader", 0, None, 5.0, None
    tools: frozenset[str] = frozenset()

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self, host: str) -> str:
        return self._token


def main(url: str, client: str, secret: str, host: str, journal: str, double: str, token: str, tool: str) -> None:
    guard = Guard(host, url=url, credential=Credential.secret(client, secret), journal=journal)

    def effect(**args: object) -> None:
        fd = os.open(Path(double), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(fd, f"{args}\n".encode())
        os.fsync(fd)
        os.close(fd)

    async def aeffect(**args: object) -> None:
        effect(**args)

    args = {"search": {"query": "a"}, "lookup": {"ticket": "T-1"}}[tool.removeprefix("a:")]
    with entered(Holder(token)):
        if tool.startswith("a:"):
            asyncio.run(guard.acall(tool.removeprefix("a:"), args, aeffect))
        else:
            guard.call(tool, args, effect)
    guard.close()
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
