"""Policies for other engines: Rego and Cedar, with the same answers or not at all.

`to_rego` and `to_cedar` give a text, or all that does not map; nothing is left out silently. An exported policy is
asked about the facts of a call (`facts_of`), which hold what those engines can not tell by themselves.
"""

from carnet_policy.export.cedar import ACTIONS, cedar_request, to_cedar
from carnet_policy.export.facts import facts_of
from carnet_policy.export.rego import to_rego
from carnet_policy.export.unmapped import Unmapped

__all__ = ["ACTIONS", "Unmapped", "cedar_request", "facts_of", "to_cedar", "to_rego"]
