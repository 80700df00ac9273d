"""Measures requests for Prometheus, where METRICS_TOKEN is set."""

import os
from collections.abc import Callable
from time import perf_counter

from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.multiprocess import MultiProcessCollector

SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder in which the processes of a web server share their counts, from before this module is imported."""
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECONDS = Histogram(
    "rewardloop_request_seconds",
    "Seconds until an answer began, by the name of the address",
    ["address", "method", "status"],
    buckets=_BUCKETS,
    registry=None,
)


class RequestMetricsMiddleware:
    """Measures every request by its address' name: neither projects nor people are told apart."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = perf_counter()
        response = self.get_response(request)
        match = request.resolver_match
        address = (match and match.view_name) or "other"
        method = request.method if request.method in _METHODS else "other"
        _SECONDS.labels(address, method, response.status_code).observe(perf_counter() - began)
        return response


def registered() -> CollectorRegistry:
    """Returns a registry with the requests of all processes of this web server."""
    registry = CollectorRegistry()
    if SHARED in os.environ:
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    else:
        registry.register(_SECONDS)
    return registry
