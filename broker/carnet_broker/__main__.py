"""`python -m carnet_broker` is the `carnet` command."""

from carnet.cli import main

if __name__ == "__main__":
    main()
