"""Every code of lint, as the manual prints them. A code that is no longer used is never given away again."""

from __future__ import annotations

from collections.abc import Mapping

from carnet_policy.lint.finding import Code, Severity

__all__ = ["CODES"]

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

UNREADABLE = Code("CP001", "unreadable", ERROR, "The file is missing, is no UTF-8 text or is no strict YAML.")
NO_LOAD = Code("CP002", "does_not_load", ERROR, "The policy does not load; whoever holds the last good one keeps it.")
NOT_COMPARED = Code("CP003", "not_compared", NOTE, "A tool has too many rules for each to be compared with each.")

DEFAULT_OPEN = Code("CP101", "default_open", WARNING, "The default is not deny: what no rule names gets through.")
UNREACHABLE = Code("CP102", "unreachable_rule", WARNING, "Another rule, as strict or stricter, always answers instead.")
DUPLICATE = Code("CP103", "duplicate_rule", WARNING, "Two rules of a tool match the same calls and say the same.")
DODGED = Code(
    "CP104", "omission_dodges", WARNING, "A deny or an approval rule is dodged by leaving its argument out of the call."
)
NO_RULES = Code("CP105", "no_rules", NOTE, "A tool stands in the policy without any rule.")
EXTRA_ARGS = Code("CP106", "extra_args", WARNING, "An allow lets arguments through that nobody looked at.")

ONE_SIDED = Code("CP201", "one_sided_bound", WARNING, "A number in an allow is bounded on one side only.")
GAP = Code("CP202", "range_gap", WARNING, "Between the ranges of two rules lie values that no rule names.")
OVERLAP = Code("CP203", "range_overlap", WARNING, "The ranges of two rules share values; the stricter rule gets them.")

UNANCHORED = Code(
    "CP301",
    "unanchored_pattern",
    WARNING,
    "A pattern reads like a search, but it must match the whole value: a deny that searches misses, an allow refuses.",
)
WIDE = Code("CP302", "wide_pattern", WARNING, "A pattern admits nearly any text of any length.")
RISKY = Code("CP303", "risky_pattern", WARNING, "A pattern holds a known slip: `[A-z]`, or a dot that is not escaped.")
DOT_STOPS = Code("CP304", "dot_stops", WARNING, "A `.` in the pattern of a deny does not match a line break.")
SHELL = Code(
    "CP305",
    "shell_argument",
    ERROR,
    "What a shell (or, milder, a database) will read is guarded by the beginning of a pattern only, or by nothing: `;` "
    "and `$(` get through.",
)
PATH = Code("CP306", "path_argument", WARNING, "A path is not bounded by path_within, so `..` or `/etc` may match.")
URL = Code("CP307", "url_argument", WARNING, "A URL is not bounded by url_host.")

UNBOUNDED = Code("CP401", "irreversible_unbounded", WARNING, "No history rule bounds an irreversible tool.")
RUN_ONLY = Code(
    "CP402", "bounded_per_run", WARNING, "An irreversible tool is bounded within a run only; a new run starts at zero."
)
UNKNOWN_EFFECT = Code("CP403", "unknown_effect", WARNING, "The catalog does not say what a tool does.")
NOTHING_COUNTED = Code("CP404", "history_unknown_tool", WARNING, "A history rule matches a tool that no rule names.")
NOT_COUNTABLE = Code(
    "CP405", "history_argument", WARNING, "A history rule adds up an argument that no rule of the tool names."
)
UNKNOWN_CLASS = Code(
    "CP406", "unknown_data_class", WARNING, "A `data_class` is no known word; only `pii` and `secret` raise the level."
)

NOT_REGISTERED = Code("CP501", "tool_not_registered", WARNING, "No host in the registry serves a tool of the policy.")
NOT_RULED = Code("CP502", "tool_without_rule", WARNING, "A tool of the registry has no rule, so the default holds.")

UNKNOWN_ARGUMENT = Code("CP601", "unknown_argument", ERROR, "The tool has no argument of this name.")
NEVER_MATCHES = Code("CP602", "never_matches", ERROR, "No value that the tool takes can match this constraint.")
MISSING_ARGUMENT = Code(
    "CP603", "missing_argument", ERROR, "An allow does not name an argument that the tool needs, so it never matches."
)
NOT_DEFINED = Code("CP604", "tool_not_defined", WARNING, "A tool of the policy is not among the tool definitions.")
NOT_NAMED = Code("CP605", "definition_without_rule", NOTE, "A defined tool has no rule, so the default holds.")
NOT_CHECKED = Code("CP606", "definition_unchecked", NOTE, "Part of a tool definition could not be followed.")

_ALL = (
    *(UNREADABLE, NO_LOAD, NOT_COMPARED),
    *(DEFAULT_OPEN, UNREACHABLE, DUPLICATE, DODGED, NO_RULES, EXTRA_ARGS),
    *(ONE_SIDED, GAP, OVERLAP),
    *(UNANCHORED, WIDE, RISKY, DOT_STOPS, SHELL, PATH, URL),
    *(UNBOUNDED, RUN_ONLY, UNKNOWN_EFFECT, NOTHING_COUNTED, NOT_COUNTABLE, UNKNOWN_CLASS),
    *(NOT_REGISTERED, NOT_RULED),
    *(UNKNOWN_ARGUMENT, NEVER_MATCHES, MISSING_ARGUMENT, NOT_DEFINED, NOT_NAMED, NOT_CHECKED),
)
CODES: Mapping[str, Code] = {code.id: code for code in _ALL}
