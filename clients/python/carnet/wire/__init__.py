"""How the SDK speaks to the broker: requests as data, client authentication, answers, retries. No decision is here."""
