"""Tokens on *Settings*: narrow or wide, light or dark, without JavaScript."""

import pytest
from playwright.sync_api import Page, expect

from annotator.accounts import tokens
from annotator.models import Token, User
from tests.browser.conftest import Open
from tests.browser.test_accessible import violations

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def create(page: Page, name: str) -> None:
    page.locator("[name=token-name]").fill(name)
    page.locator("form[action='/settings/tokens/'] button").click()


@pytest.mark.parametrize(("scheme", "locale", "width"), [("light", "en-US", 360), ("dark", "de-DE", 1440)])
def test_the_pages_are_accessible_and_fit(open_page: Open, alice: User, scheme: str, locale: str, width: int) -> None:
    tokens.issue(alice, name="a-name-without-a-space-" * 3)
    page = open_page(alice, color_scheme=scheme, locale=locale, viewport={"width": width, "height": 800})
    page.goto("/settings/")
    faults = violations(page)
    fits = [page.evaluate("document.documentElement.scrollWidth") <= width]
    create(page, "my script")
    page.wait_for_selector("#token")
    faults += violations(page)
    fits += [page.evaluate("document.documentElement.scrollWidth") <= width]
    assert (faults, fits) == ([], [True, True])


def test_a_token_is_created_and_revoked_without_javascript(open_page: Open, alice: User) -> None:
    page = open_page(alice, java_script_enabled=False)
    page.goto("/settings/")
    create(page, "my script")
    expect(page.locator("#token")).to_be_visible()
    page.get_by_role("link", name="Back to the settings").click()
    page.get_by_role("button", name="Revoke my script").click()
    expect(page.get_by_text("The token has been revoked.")).to_be_visible()
    assert not Token.objects.exists()


def test_a_password_that_somebody_else_chose_is_changed_first(open_page: Open, alice: User) -> None:
    User.objects.update(must_change_password=True)
    page = open_page(alice)
    page.goto("/")
    expect(page.get_by_text("Somebody else chose your password.")).to_be_visible()
    assert violations(page) == []
    for label, text in (("Old", "correct horse battery"), ("New", "as I like it, mostly")):
        page.get_by_label(f"{label} password", exact=True).fill(text)
    page.get_by_label("New password confirmation").fill("as I like it, mostly")
    page.get_by_role("button", name="Change your password").click()
    expect(page.get_by_role("heading", name="Your projects")).to_be_visible()
