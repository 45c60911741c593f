"""The server between agents and engines that records every generating call: the extra `gateway`."""

from tokenrecords.gateway.client import AsyncClient, Client
from tokenrecords.gateway.server import create_app, serve
from tokenrecords.gateway.settings import Settings

__all__ = ["AsyncClient", "Client", "Settings", "create_app", "serve"]
