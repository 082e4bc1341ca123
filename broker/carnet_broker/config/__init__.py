"""`carnet.yaml`: reading, checking and reading again."""
