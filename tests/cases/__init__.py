"""Plays directories of cases (what people really ran into, as data) against the product: `python -m tests.cases DIR`.

Nothing of the product is replaced: policies are loaded by its loader, tokens are minted by a real broker and verified
by the guard's own verifier, sequences run over HTTP against a broker on loopback whose clock the runner moves. A key,
word or step that the runner does not know fails the case; it is never passed over.
"""
