"""Listening sockets that this process makes itself.

Connections inherit TCP_NODELAY from the listener; without it a small answer can wait 40 ms for the peer's delayed
acknowledgement. The protocol number is given because asyncio sets the option only on sockets that name it.
"""

import re
import socket
from ipaddress import ip_address

__all__ = ["Address", "address", "is_loopback", "listen", "url"]

Address = tuple[str, int]
_PATTERN = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9.-]+)):(?P<port>[0-9]{1,5})")


def address(text: str) -> Address:
    """`host:port`, IPv6 in brackets. ValueError with one sentence for anything else."""
    match = _PATTERN.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"'{text}' is not host:port (for example 127.0.0.1:8420 or [::1]:8420)")
    return match["six"] or match["host"], int(match["port"])


def is_loopback(host: str) -> bool:
    """True for localhost and for addresses of 127.0.0.0/8 and ::1; a name that must be resolved is not loopback."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def listen(where: Address, backlog: int = 512) -> socket.socket:
    """A bound, listening, non-blocking TCP socket. OSError when the address is taken or not ours."""
    host, port = where
    family, _, _, _, target = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.bind(target)
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


def url(sock: socket.socket) -> str:
    """`http://host:port` of a listening socket, with the port that the system chose."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
