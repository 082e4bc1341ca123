"""Benchmarks: ratios inside one run, so that the machine's speed cancels out."""

__all__: list[str] = []
