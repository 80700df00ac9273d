"""Languages by code and name."""

import pytest

from annotator.reading.languages import code_of


@pytest.mark.parametrize(
    ("given", "code"),
    [("en", "en"), (" DE ", "de"), ("pt-BR", "pt-br"), ("pt_br", "pt-br"), ("gsw", "gsw"), ("zh-hant", "zh-hant")],
)
def test_a_code_is_itself(given: str, code: str) -> None:
    assert code_of(given) == code


@pytest.mark.parametrize(("given", "code"), [("English", "en"), ("german", "de"), ("Swiss German", "gsw")])
def test_a_name_has_a_code(given: str, code: str) -> None:
    assert code_of(given) == code


@pytest.mark.parametrize("given", ["", "xx", "Klingonisch", "en-", "e", "deutsch!", "12"])
def test_what_is_no_language_has_none(given: str) -> None:
    assert code_of(given) == ""
