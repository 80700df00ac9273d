"""The web server: waitress in several processes that share one listening socket.

waitress reads whole requests before one of its threads sees them, so a slow sender holds a socket and no thread.
`processes` starts the processes and keeps them alive, `server` is the loop of one, `channel` a connection with its
deadlines, `parser` a request with its limits, `thread_pools` the threads, `connections` what the processes know of each
other.
"""
