"""Checks a connection from the pool without a round trip, where Django would query the server at every request.

A server that stops or restarts sends a message on, or closes, each of its connections. A connection with nothing to
read is therefore alive; one with something to read is checked by a query.
"""

import select
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> "psycopg.Connection[Any]":
        """Returns the pool's first working connection. Raises OperationalError if the pool has none for too long."""
        while True:
            connection: psycopg.Connection[Any] = super().get_new_connection(conn_params)
            if not self.pool or is_usable(connection):
                return connection
            connection.close()
            self.pool.putconn(connection)  # the pool replaces a closed connection by a new one


def is_usable(connection: "psycopg.Connection[Any]") -> bool:
    """Returns whether the connection's server is still there, as far as this end can know."""
    poll = select.poll()
    try:
        poll.register(connection.fileno(), select.POLLIN)
        if poll.poll(0):
            ConnectionPool.check_connection(connection)
    except psycopg.OperationalError:
        return False
    return True
