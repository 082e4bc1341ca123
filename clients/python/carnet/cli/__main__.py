"""`python -m carnet.cli`: the same as `carnet`."""

from carnet.cli import main

__all__: list[str] = []

main()
