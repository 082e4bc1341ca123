"""The key directory: signing keys with their rotation, the master secret, and the marker of the store's life."""

from carnet_broker.keys.document import KeyState, State
from carnet_broker.keys.errors import KeysError
from carnet_broker.keys.ring import KeyRing

__all__ = ["KeyRing", "KeyState", "KeysError", "State"]
