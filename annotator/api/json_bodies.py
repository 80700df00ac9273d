"""JSON in requests and answers: only what can be stored is parsed, and orjson, which is faster, writes it."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

import orjson
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer

from annotator.infrastructure.db.json_values import DEEPEST, NestedTooDeeply, texts_and_numbers
from annotator.infrastructure.db.storable_text import fault_in, shown_name

# Line ends that are valid within JSON texts and end a line of JavaScript: the framework's renderer escapes them too.
_LINE_ENDS = {"\u2028".encode(): rb"\u2028", "\u2029".encode(): rb"\u2029"}


class Renderer(JSONRenderer):
    """Does what JSONRenderer does. What orjson refuses or would write differently, JSONRenderer writes itself."""

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        if data is None or (accepted_media_type and self.get_indent(accepted_media_type, renderer_context or {})):
            return super().render(data, accepted_media_type, renderer_context)
        try:
            # Datetimes go to the same encoder as with JSONRenderer. NaN, which orjson writes as null, is in no answer:
            # the database stores none.
            text = orjson.dumps(data, self.encoder_class().default, orjson.OPT_PASSTHROUGH_DATETIME)
        except orjson.JSONEncodeError:  # such as keys that are no texts, and whole numbers of more than 64 bits
            return super().render(data, accepted_media_type, renderer_context)
        if not text.isascii():
            for line_end, escaped in _LINE_ENDS.items():
                text = text.replace(line_end, escaped)
        return text


class StorableJSONParser(JSONParser):
    """Refuses what PostgreSQL or the encoder of the answer would fail on later."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """Returns the body. Raises ParseError, or ValidationError with the dotted place of what cannot be stored."""
        try:
            data = super().parse(stream, media_type, parser_context)
        except RecursionError as deep:
            raise ParseError("JSON parse error - the body is nested too deeply") from deep
        try:
            for place, value in texts_and_numbers(data):
                if isinstance(value, str) and (fault := fault_in(value)):
                    text = f"The text holds {fault.what}, which cannot be stored."
                    raise ValidationError({shown_name(place): [text]})
                if isinstance(value, float) and not isfinite(value):
                    raise ValidationError({place: ["The number is too large."]})
        except NestedTooDeeply:
            raise ParseError(f"JSON parse error - the body is nested more than {DEEPEST} levels deep") from None
        return data
