"""Writes answers as JSON by orjson, which is faster than Django REST framework's own renderer."""

from collections.abc import Mapping
from typing import Any

import orjson
from rest_framework.renderers import JSONRenderer

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
