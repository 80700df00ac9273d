"""Query parameters, checked: a misspelt one must not silently leave a default in force."""

from rest_framework import serializers
from rest_framework.request import Request


def flag(request: Request, name: str) -> bool:
    """1, true, yes or on against 0, false, no or off; absent means no."""
    sent = request.query_params.get(name, "0")
    try:
        return bool(serializers.BooleanField().run_validation(sent))
    except serializers.ValidationError as unclear:
        raise serializers.ValidationError({name: [f"Write 1 or 0, not {sent!r}."]}) from unclear
