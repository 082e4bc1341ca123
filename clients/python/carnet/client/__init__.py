"""The parent's side: open a run, spawn children, hand them their tokens.

`_async` is written by hand; `_sync` is made from it by `scripts/make_sync.py`; what differs between the two worlds
stands in `_io_async` and `_io_sync`.
"""

__all__: list[str] = []
