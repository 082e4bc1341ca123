"""Tool definitions as MCP servers and model APIs write them: names and input schemas, read strictly, never fetched."""

from carnet_policy.tooldefs.definition import ToolDefinition, ToolDefinitions
from carnet_policy.tooldefs.formats import read_definitions
from carnet_policy.tooldefs.shape import ANYTHING, Shape
from carnet_policy.tooldefs.starting import starting_policy

__all__ = ["ANYTHING", "Shape", "ToolDefinition", "ToolDefinitions", "read_definitions", "starting_policy"]
