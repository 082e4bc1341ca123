"""The system of record. `base` is the contract; `open` makes a store by its address."""
