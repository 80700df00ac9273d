"""The web server: waitress in several processes that share one listening socket.

waitress reads whole requests before one of its threads sees them, so a slow sender holds a socket and no thread.
`processes` starts the processes and keeps them alive, `server` is the loop of one and what it knows of the others,
`channel` is a connection with its limits and deadlines, and `thread_pools` has the threads.

Maintained servers by their settings cannot stand in for it where no proxy does, as with `make run`. On 2026-11-26, with
two processes of four threads and no proxy, they were given 200 senders of a body that never ends, and the attacks of
tests/attacks/test_{sockets,bodies,waits}.py:

- granian 2.8: no page within 8 s; 7 of 29 attacks succeed. A body that a view reads holds its thread, so do a stalled
  download and a trainer who waits, and all of them share the pages' threads. 138 MB; ours has 131.
- gunicorn 27 with threads: no page within 8 s; 237 MB.
- waitress 3.0 as it is: pages within 0.03 s as here, but 14 of 29 attacks succeed. Trainers, hashed models and stalled
  downloads take the pages' threads, a stranger's 50 MB go to the disk, and connections gather in one process.

Behind a proxy (deploy/nginx.conf) the deadlines are its matter, but shares of the threads are not: it does not know who
waits for what.
"""
