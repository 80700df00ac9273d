"""The web server: waitress in several processes that share one listening socket.

waitress reads whole requests before one of its threads sees them, so a slow sender holds a socket and no thread.
`processes` starts the processes and keeps them alive, `server` is the loop of one, `channel` is a connection with its
deadlines, `parser` reads a request within its limits, `thread_pools` has the threads, and `connections` holds what the
processes know of each other.
"""
