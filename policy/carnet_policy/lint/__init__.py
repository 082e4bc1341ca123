"""Lint: what a policy's author should look at again. No finding keeps a policy from loading.

Each family of findings has a module; `codes` lists them all. What lint says is always right as far as it goes: where
something can not be told for certain, it keeps silent.
"""

from carnet_policy.lint.checking import check, unreadable
from carnet_policy.lint.codes import CODES
from carnet_policy.lint.finding import Code, Finding, Severity
from carnet_policy.lint.registry import registered_policies, registered_tools

__all__ = ["CODES", "Code", "Finding", "Severity", "check", "registered_policies", "registered_tools", "unreadable"]
