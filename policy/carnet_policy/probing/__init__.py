"""Calls worth asking about: values at, just below and just above every bound of a policy, near misses of patterns,
wrong types, missing and unnamed arguments, and pasts at the limits of history rules. All of it deterministic."""

from carnet_policy.probing.calls import Probes, probe_calls
from carnet_policy.probing.pasts import ProbePast, probe_pasts
from carnet_policy.probing.specimens import specimens
from carnet_policy.probing.values import probe_values, witness

__all__ = ["ProbePast", "Probes", "probe_calls", "probe_pasts", "probe_values", "specimens", "witness"]
