"""Secrets are typed by a person at the controlling terminal: never read from a pipe, a file or the environment,
because agents run in operators' shells."""

import getpass
import os

from carnet.cli.problems import Exit, Problem

__all__ = ["ask_secret"]


def ask_secret(prompt: str) -> str:
    """What the person typed, unseen. A process without a controlling terminal is refused."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        raise Problem("A person must type the passphrase at a terminal; there is none here.", Exit.USAGE) from None
    try:
        typed = getpass.getpass(prompt)
    except EOFError:
        raise Problem("Nothing was typed.", Exit.USAGE) from None
    if not typed:
        raise Problem("Nothing was typed.", Exit.USAGE)
    return typed
