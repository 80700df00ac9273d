"""One look: the pages and the admin load the same values, and nothing else names a colour or a font."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from annotator.models import User
from tests.builders import make_member, make_project, make_user
from tests.conftest import Cast

CSS = settings.BASE_DIR / "static" / "css"
VARIABLES = (CSS / "variables.css").read_text()
LINK = '<link rel="stylesheet" href="/static/css/variables.css">'


def defined(text: str) -> set[str]:
    return set(re.findall(r"(--[\w-]+):", text))


def test_every_colour_of_the_admins_theme_is_one_of_ours() -> None:
    colors: dict[str, dict[str, str]] = settings.UNFOLD["COLORS"]  # type: ignore[assignment]
    named = [value for shades in colors.values() for value in shades.values()]
    assert len(named) == 22
    assert {value.removeprefix("var(").removesuffix(")") for value in named} <= defined(VARIABLES)


@pytest.mark.parametrize("name", ["admin", "agreement", "annotators", "comparison", "review", "rewardloop"])
def test_other_stylesheets_name_no_colour_but_shadows(name: str) -> None:
    assert not re.findall(r"#(?!000)[0-9a-fA-F]{3,8}\b[^{]*;", (CSS / f"{name}.css").read_text())


def test_every_variable_that_is_used_is_defined() -> None:
    sheets = {path.name: path.read_text() for path in CSS.glob("*.css")}
    everywhere = set().union(*map(defined, sheets.values()))
    used = {name for text in sheets.values() for name in re.findall(r"var\((--[\w-]+)", text)}
    assert {name for name in used if not name.startswith("--color-")} <= everywhere  # those are the theme's


def test_the_dark_scheme_redefines_only_what_there_is() -> None:
    light, dark = VARIABLES.split("@media (prefers-color-scheme: dark)")
    assert defined(dark) <= defined(light)


def test_pages_and_the_admin_load_the_same_values(cast: Cast, client: Client) -> None:
    User.objects.filter(pk=cast.carol.pk).update(is_staff=True)
    client.force_login(cast.carol)
    assert LINK in client.get("/").content.decode()
    assert 'href="/static/css/variables.css"' in client.get("/admin/").content.decode()


def test_every_font_file_that_is_named_is_there() -> None:
    named = re.findall(r'url\("\.\./([^"]+)"\)', VARIABLES)
    assert len(named) == 7
    assert all((Path(settings.BASE_DIR) / "static" / name).is_file() for name in named)


def sidebar(page: str) -> list[str]:
    above = page[page.index('id="nav-sidebar-apps"') : page.index("Rating work")]
    return re.findall(r"<span>([^<]+)</span>", above)


def test_the_admins_sidebar_and_the_pages_name_the_same_in_the_same_order(cast: Cast, client: Client) -> None:
    User.objects.filter(pk=cast.carol.pk).update(is_staff=True)
    client.force_login(cast.carol)
    page = client.get("/projects/talk/review/").content.decode()
    parts = re.findall(r"<nav.*?</nav>", page, re.DOTALL)[:2]
    bar, tabs = (re.findall(r"<a [^>]*>([^<]+)</a>", part) for part in parts)
    assert bar == ["Your projects", "Your work", "Admin", "Glossary", "Settings"]
    assert tabs == [
        "Overview",
        "Data",
        "People",
        "Guidelines and rubric",
        "Review",
        "Agreement",
        "Annotators",
        "Models",
        "Settings",
    ]
    assert sidebar(client.get("/admin/").content.decode()) == [*bar, *tabs]


def test_the_sidebar_names_only_projects_that_the_user_looks_after(cast: Cast, client: Client) -> None:
    make_member(make_project("secret"), make_user("mallory"), role="manager")
    User.objects.filter(pk=cast.carol.pk).update(is_staff=True)
    client.force_login(cast.carol)
    page = client.get("/admin/").content.decode()
    assert ("/projects/talk/review/" in page, "/projects/secret/" in page) == (True, False)


def test_whoever_may_not_enter_the_admin_is_not_led_to_it(cast: Cast, client: Client) -> None:
    client.force_login(cast.carol)
    assert "/admin/" not in client.get("/projects/talk/review/").content.decode()
