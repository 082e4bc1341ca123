"""The names of claims, kinds of tokens and limits: written once, used by minting, verifying and tests."""

__all__ = [
    "ACT",
    "AUD",
    "AUTHORIZATION_DETAILS",
    "CLIENT_ID",
    "CNF",
    "DELEGATION",
    "EXP",
    "IAT",
    "ISS",
    "JTI",
    "LEEWAY",
    "LEVEL_TTL",
    "MAX_COUNT",
    "MAX_DEPTH",
    "MAX_MEMBERS",
    "MAX_TIME",
    "MAX_TOKEN_BYTES",
    "NBF",
    "ROOT_TTL",
    "SCOPE",
    "SUB",
    "TENANT",
    "TOOL_DETAIL",
    "TXN",
    "TYP_ACCESS",
    "TYP_CHECKPOINT",
    "TYP_CLIENT_AUTH",
    "TYP_GUARD",
    "TYP_SESSION",
]

ISS = "iss"
SUB = "sub"
AUD = "aud"
CLIENT_ID = "client_id"
ACT = "act"
SCOPE = "scope"
AUTHORIZATION_DETAILS = "authorization_details"
CNF = "cnf"
JTI = "jti"
IAT = "iat"
NBF = "nbf"
EXP = "exp"
TXN = "txn"
TENANT = "tenant"
DELEGATION = "urn:carnet:delegation"
TOOL_DETAIL = "urn:carnet:tool:v1"

TYP_ACCESS = "at+jwt"  # RFC 9068: root and child tokens
TYP_GUARD = "carnet-guard+jwt"
TYP_SESSION = "carnet-session+jwt"
TYP_CHECKPOINT = "carnet-checkpoint+jwt"
TYP_CLIENT_AUTH = "client-authentication+jwt"

MAX_TOKEN_BYTES = 4096
MAX_DEPTH = 12  # of the JSON in a token: ceilings nest
MAX_MEMBERS = 256
MAX_COUNT = 2**31 - 1  # of whatever a token counts: resources, calls, versions
MAX_TIME = 2**33 - 1  # Unix seconds
LEEWAY = 5  # seconds that clocks may differ, on nbf and exp
LEVEL_TTL = {0: 900, 1: 600, 2: 300}  # seconds; a token that lives longer than its level allows is refused
ROOT_TTL = 900
