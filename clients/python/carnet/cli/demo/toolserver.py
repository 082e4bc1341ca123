"""A guarded tool server as a user would write one. Run as `python -m carnet.cli.demo.toolserver HOST PORT`.

The guard takes CARNET_URL and its client credential from the environment.
"""

import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from carnet import Guard

__all__ = ["build", "main"]


class _Search(BaseModel):
    query: str


class _Text(BaseModel):
    text: str


class _Tag(BaseModel):
    ticket_id: str
    tag: str


class _Customer(BaseModel):
    customer_id: str


class _Refund(BaseModel):
    amount: float
    customer_id: str


def build(host: str, ledger: Path) -> FastAPI:
    """The application of one host. ledger: a file in which `refund` leaves a line each time it really runs."""
    guard = Guard(host)
    app = guard.install(FastAPI(title=host))
    if host == "desk":
        _desk(app, guard, ledger)
    else:
        _orders(app, guard)
    return app


def _desk(app: FastAPI, guard: Guard, ledger: Path) -> None:
    @app.post("/search_tickets")
    @guard.tool(name="search_tickets")
    def search_tickets(ask: _Search) -> dict[str, list[str]]:
        return {"tickets": [f"T-17 {ask.query}: parcel late", "T-18 wrong size"]}

    @app.post("/summarize")
    @guard.tool(name="summarize")
    def summarize(ask: _Text) -> dict[str, str]:
        return {"summary": ask.text[:60]}

    @app.post("/tag_ticket")
    @guard.tool(name="tag_ticket")
    def tag_ticket(ask: _Tag) -> dict[str, str]:
        return {"tagged": ask.ticket_id}

    @app.post("/refund")
    @guard.tool(name="refund")
    def refund(ask: _Refund) -> dict[str, float]:
        with ledger.open("a", encoding="utf-8") as out:
            out.write(f"{ask.customer_id} {ask.amount}\n")
        return {"refunded": ask.amount}


def _orders(app: FastAPI, guard: Guard) -> None:
    @app.post("/get_invoice")
    @guard.tool(name="get_invoice")
    def get_invoice(ask: _Customer) -> dict[str, str]:
        return {"invoice": f"INV-{ask.customer_id}"}


def main() -> None:
    host, port, ledger = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    uvicorn.run(build(host, ledger), host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()
