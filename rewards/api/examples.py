"""Adds the examples of both halves to the OpenAPI schema."""

from typing import Any

from annotator.api import example_bodies, example_values
from annotator.api.examples import Examples, Schema, allow_several
from rewards.api import example_values as machine


def add_examples(result: Schema, generator: Any, request: Any, public: bool) -> Schema:
    """Adds the examples; drf-spectacular calls this when it has made the schema."""
    allow_several(result["components"]["schemas"])
    examples_of(result).add()
    return result


def examples_of(document: Schema) -> Examples:
    """Returns what makes the examples of the schema."""
    return Examples(
        document,
        values=example_values.VALUES | machine.VALUES,
        requests=example_bodies.REQUESTS | machine.REQUESTS,
        accepted=example_bodies.ACCEPTED | machine.ACCEPTED,
    )
