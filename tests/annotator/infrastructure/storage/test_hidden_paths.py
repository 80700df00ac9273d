"""What is left of a path in a text that managers read."""

import pytest
from django.conf import LazySettings

from annotator.infrastructure.storage.hidden_paths import value_without_places, without_places


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('File "/usr/lib/python3/json/decoder.py", line 3', 'File ".../decoder.py", line 3'),
        ("at /opt/models/llama: gone", "at .../llama: gone"),
        ("file:///opt/a/b and ~/c/d", ".../b and .../d"),
        ("see https://example.org/a/b and s3://bucket/c", "see https://example.org/a/b and s3://bucket/c"),
        ("1/2 and/or 3/4 tokens/s", "1/2 and/or 3/4 tokens/s"),
        ("/srv/My Files/artifacts/runs/3/train.log", "artifacts/runs/3/train.log"),
        ("/srv/My Files/artifacts-of-others/x", ".../My Files/artifacts-of-others/x"),
    ],
)
def test_a_text_keeps_the_names_of_files_alone(text: str, left: str, settings: LazySettings) -> None:
    settings.ARTIFACTS = "/srv/My Files/artifacts"
    assert without_places(text) == left
    assert without_places(left) == left


def test_every_text_in_a_value_is_cleared() -> None:
    value = {"a": ["/opt/x/y", 3, None, {"b": "/opt/x/z"}]}
    assert value_without_places(value) == {"a": [".../y", 3, None, {"b": ".../z"}]}
