"""Files of tool definitions that commands are given."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from carnet.cli.policy.sources import read_text
from carnet.cli.problems import Exit, Problem
from carnet_policy import PolicyError

if TYPE_CHECKING:
    from carnet_policy.tooldefs import ToolDefinitions

__all__ = ["read_tools"]

MAX_BYTES = 8 << 20


def read_tools(files: Sequence[Path]) -> "ToolDefinitions":
    """The tools of all the files together; raises Problem for what can not be used."""
    from carnet_policy.tooldefs import read_definitions

    texts = [(str(file), read_text(file, MAX_BYTES)) for file in files]
    try:
        return read_definitions(texts)
    except PolicyError as error:
        raise Problem(str(error), Exit.USAGE) from None
