"""The token: its claims, the strict gate in front of PyJWT, the one verifier, and what a token covers.

Everything here is pure: times, keys and revocations are arguments, nothing reads a clock, a network or randomness.
Import from the modules (`carnet.token.verify`, `carnet.token.claims`, ...); none of them imports cryptography at load.
"""

__all__: list[str] = []
