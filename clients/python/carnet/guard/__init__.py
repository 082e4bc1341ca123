"""The guard: it owns the callable of a tool, and nothing reaches that callable but through it.

Order of one call: bind and freeze the arguments, verify the token, clear scope and ceilings, decide, wait for a person
where one is asked, write the intent down, look at revocations and policy again, call from the frozen copy, write the
outcome down. Whatever goes wrong before the call is a refusal. It stops a model, not code in the same process.
"""

__all__: list[str] = []
