"""Whether this worker was asked to end. Long work checks it, and stops at a point from which it can be resumed."""

import threading

stopping = threading.Event()
