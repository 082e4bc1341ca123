"""`carnet policy`: write, check and try policies. Needs no broker."""
