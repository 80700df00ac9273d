"""A connection from the pool is checked without a round trip, where Django would ask the server at every request.

A server that ends or restarts says so on every connection. One on which nothing was said is alive; one on which
something was said is asked.
"""

import select
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> "psycopg.Connection[Any]":
        """The pool's first connection that works; raises OperationalError when the pool has had none for too long."""
        while True:
            connection: psycopg.Connection[Any] = super().get_new_connection(conn_params)
            if not self.pool or is_usable(connection):
                return connection
            connection.close()
            self.pool.putconn(connection)  # which replaces it


def is_usable(connection: "psycopg.Connection[Any]") -> bool:
    """Whether the connection's server is still there, so far as this end can know."""
    said = select.poll()
    try:
        said.register(connection.fileno(), select.POLLIN)
        if said.poll(0):
            ConnectionPool.check_connection(connection)
    except psycopg.OperationalError:
        return False
    return True
