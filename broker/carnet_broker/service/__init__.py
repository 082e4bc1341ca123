"""Use cases: decide, store and record in one commit."""
