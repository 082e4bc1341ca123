"""What the broker decides, as pure functions of their arguments."""
