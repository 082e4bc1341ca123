"""Values of every kind, JSON or not."""

from hypothesis import strategies as st

__all__ = ["ANYTHING"]


class Odd(str):
    """A string that is no plain string."""


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=5), st.binary(max_size=3))
    | st.sampled_from([Odd("x"), "\ud800", 10**4000, -0.0, (1,), 1j, object(), "x", 1, 2.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
    max_leaves=6,
)
