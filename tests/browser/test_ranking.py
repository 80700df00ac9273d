"""Three responses and nine put in order: by keys, by buttons, by dragging, without JavaScript; drafts and revisions."""

import pytest
from playwright.sync_api import Locator, Page, expect

from annotator.models import Adjudication, Annotation, Draft, Project, Role, User
from annotator.stages import annotation
from tests.browser.conftest import Open, ask
from tests.browser.test_accessible import violations
from tests.browser.test_annotate import rate_everything
from tests.builders import NOW, claimed, make_member, make_task, make_user, submission

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def opened(open_page: Open, user: User, responses: int, **options: object) -> Page:
    """The rating page of a task with so many responses, in the order of their positions."""
    project = Project.objects.get()
    Project.objects.update(ask_preference=True)
    task = make_task(project, "first", responses=responses)
    held = claimed(project, user)
    held.response_order = list(range(responses))
    held.save(update_fields=["response_order"])
    assert task.pk == held.task_id
    page = open_page(user, **options)
    page.goto("/projects/talk/annotate/")
    page.wait_for_load_state("load")
    return page


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def handle(page: Page, letter: str) -> Locator:
    return ask(page.locator("#ranking")).locator(f"[data-response={letter}] [data-handle]")


def button(page: Page, letter: str, move: str) -> Locator:
    return ask(page.locator("#ranking")).locator(f"[data-response={letter}] [data-move={move}]")


def order(page: Page) -> str:
    """Ranks and letters, as the list shows them."""
    shown = page.locator("[data-ranked] :is(.rank, .letter)").all_inner_texts()
    return " ".join(f"{rank}{letter}" for rank, letter in zip(shown[::2], shown[1::2], strict=True))


def stored() -> str:
    """The ranking in the database, by the responses' letters."""
    made = Annotation.objects.current().get()
    letters = {response.pk: "ABCDEFGHI"[response.position] for response in made.assignment.task.responses.all()}
    assert made.ranking is not None
    return " ".join("".join(letters[response] for response in tier) for tier in made.ranking)


def finish(page: Page, responses: int) -> None:
    rate_everything(page, 3, scales=5 * responses)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("heading", name="No task for you right now")).to_be_visible()


def test_nothing_is_ranked_beforehand(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 9)
    expect(page.locator("[data-tray] > li")).to_have_count(9)
    expect(page.locator("[data-ranked] > li")).to_have_count(0)
    expect(page.locator("[data-placed]")).to_have_text("0 of 9 placed")
    assert {select.input_value() for select in page.locator(".ranking select").all()} == {""}


def test_three_responses_are_ranked_by_keys(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 3)
    handle(page, "C").focus()
    press(page, "Enter")
    expect(page.locator("[data-announced]")).to_have_text("Response C: rank 1. 1 of 3 placed.")
    handle(page, "A").focus()
    press(page, "Alt+ArrowUp", "Alt+ArrowUp")
    assert order(page) == "1A 2C"
    expect(handle(page, "A")).to_be_focused()
    press(page, "Alt+ArrowDown", "=")
    assert order(page) == "1A 1C"
    expect(page.locator("[data-announced]")).to_have_text("Response A: rank 1, tied with C. 2 of 3 placed.")
    handle(page, "B").focus()
    press(page, "Enter")
    expect(page.locator("[data-placed]")).to_have_text("3 of 3 placed")
    finish(page, 3)
    assert stored() == "AC B"


def badges(page: Page) -> list[str]:
    return page.locator(".badge").all_inner_texts()


def test_letters_are_typed_the_best_first(open_page: Open, talk: Project, alice: User) -> None:
    Project.objects.update(domains=["Law", "Trade"])
    page = opened(open_page, alice, 5)
    handle(page, "A").focus()
    press(page, *"ce=a")
    assert (order(page), badges(page)) == ("1C 2A 2E", ["2", "–", "1", "–", "2"])
    press(page, *"cb=c")
    assert order(page) == "1A 1E 2B 2C"
    press(page, "Shift", "d")
    assert order(page) == "1A 1E 2B 2C 3D"
    # What comes after the ranking is in focus.
    expect(page.locator("[name=domain]").first).to_be_focused()
    press(page, "2")
    finish(page, 5)
    assert stored() == "AE BC D"


def test_letters_rank_wherever_the_focus_is_once_the_scales_are_done(
    open_page: Open, talk: Project, alice: User
) -> None:
    page = opened(open_page, alice, 3)
    rate_everything(page, 3, scales=15)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.locator("#errors")).to_be_visible()
    page.get_by_role("heading", name="Response A").click()
    press(page, *"ba=c")
    assert order(page) == "1B 2A 2C"
    expect(page.locator("#errors")).to_have_count(0)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("heading", name="No task for you right now")).to_be_visible()
    assert stored() == "B AC"


def test_a_letter_that_is_no_response_is_a_key_of_the_page(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 3)
    handle(page, "A").focus()
    press(page, "b", "s")
    expect(page.locator("#skip")).to_have_attribute("open", "")
    assert order(page) == "1B"


def test_the_rank_is_beside_each_letter_and_can_be_clicked(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 3)
    for letter in "CAB":
        page.locator(f"#head-{letter} .badge").click()
    assert badges(page) == ["2", "3", "1"]
    page.get_by_label("Response A: rank 2").first.click()
    assert badges(page) == ["–", "2", "1"]
    assert violations(page) == []
    page.locator("#head-A .badge").click()
    page.reload()
    assert badges(page) == ["3", "2", "1"]
    finish(page, 3)
    assert stored() == "C B A"


def test_the_order_of_the_ratings_is_offered(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 3)
    offer = page.get_by_role("button", name="In the order of Helpfulness")
    for letter, level in zip("ABC", "252", strict=True):
        assert offer.count() == 0, letter
        page.locator(f".strip a[href='#response-{letter}']").click()
        press(page, level, *"3333")
    ask(page.locator("#ranking"))
    offer.click()
    assert (order(page), badges(page)) == ("1B 2A 2C", ["2", "1", "2"])
    expect(offer).to_have_count(0)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("heading", name="No task for you right now")).to_be_visible()
    assert stored() == "B AC"


def test_nine_responses_are_ranked_by_keys(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 9)
    handle(page, "A").focus()
    press(page, *["Enter"] * 9)
    assert order(page) == "1A 2B 3C 4D 5E 6F 7G 8H 9I"
    handle(page, "I").focus()
    press(page, *["Alt+ArrowUp"] * 8)
    handle(page, "E").focus()
    press(page, "=", "ArrowDown", "=")
    assert order(page) == "1I 2A 3B 4C 5D 5E 5F 6G 7H"
    press(page, "=")
    assert order(page) == "1I 2A 3B 4C 5D 5E 6F 7G 8H"
    press(page, "Delete")
    expect(page.locator("[data-placed]")).to_have_text("8 of 9 placed")
    press(page, "Enter")
    finish(page, 9)
    assert stored() == "I A B C DE G H F"


def test_three_responses_are_ranked_by_buttons(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 3)
    for letter in "BAC":
        button(page, letter, "place").click()
    button(page, "C", "up").click()
    button(page, "B", "down").click()
    assert order(page) == "1C 2B 3A"
    button(page, "A", "tie").click()
    finish(page, 3)
    assert stored() == "C AB"


def test_nine_responses_are_ranked_by_buttons_on_a_phone(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 9, viewport={"width": 360, "height": 740}, has_touch=True)
    for letter in "IHGFEDCBA":
        button(page, letter, "place").tap()
    button(page, "A", "back").tap()
    button(page, "A", "place").tap()
    button(page, "H", "tie").tap()
    boxes = [button.bounding_box() for button in page.locator(".ranking button:visible").all()]
    small = [box for box in boxes if box and min(box["width"], box["height"]) < 44]
    assert small == []
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    for letter in "ABCDEFGHI":
        page.locator(f".strip a[href='#response-{letter}']").tap()
        for _ in range(5):
            page.keyboard.press("4")
    expect(page.locator("#answered")).to_have_text("46 of 46 answered")
    page.get_by_role("button", name="Submit and next").tap()
    expect(page.get_by_role("heading", name="No task for you right now")).to_be_visible()
    assert stored() == "HI G F E D C B A"


def test_responses_are_dragged(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 4)
    item = ask(page.locator("#ranking")).locator("[data-response=A]")
    page.locator("[data-response=C]").drag_to(page.locator("[data-ranked]"))
    item.drag_to(page.locator("[data-response=C]"), target_position={"x": 3, "y": 10})
    page.locator("[data-response=B]").drag_to(item)
    page.locator("[data-response=D]").drag_to(item, target_position={"x": 3, "y": 10})
    assert order(page) == "1D 2A 2B 3C"
    finish(page, 4)
    assert stored() == "D AB C"


def test_the_badges_on_the_responses_are_dragged_into_the_order(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 3)
    for letter in "BAC":
        page.locator(f"#response-{letter} .badge").hover()
        page.mouse.down()
        page.mouse.move(300, 300, steps=3)
        expect(page.locator("#ranking.current")).to_be_visible()
        page.locator("[data-ranked]").hover()
        page.locator("[data-ranked]").hover()
        page.mouse.up()
    assert order(page) == "1B 2A 3C"
    page.locator("#response-A .badge").click()
    assert order(page) == "1B 2C"


def test_it_works_without_javascript(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 3, java_script_enabled=False)
    expect(page.get_by_role("button", name="Place")).to_have_count(0)
    page.get_by_label("Rank of response A").select_option("2")
    page.get_by_label("Rank of response B").select_option("1")
    rate_everything(page, 3, scales=15)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("alert")).to_contain_text("Rank every response. Not placed yet: C")
    page.get_by_label("Rank of response C").select_option("2")
    finish(page, 3)
    assert stored() == "B AC"


def test_a_half_made_ranking_is_kept(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 4)
    for letter in "DB":
        button(page, letter, "place").click()
    button(page, "B", "up").click()
    expect(page.locator("#saved")).to_contain_text("saved")
    page.wait_for_load_state("load")
    kept = {name: value for name, value in Draft.objects.get().form.items() if name.startswith("rank-")}
    assert sorted(kept.values()) == ["1", "2"]
    page.goto("/projects/talk/annotate/")
    page.wait_for_load_state("load")
    assert order(page) == "1B 2D"
    expect(page.locator("[data-placed]")).to_have_text("2 of 4 placed")


def test_an_unfinished_ranking_is_named(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 3)
    button(page, "B", "place").click()
    rate_everything(page, 3, scales=15)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("alert")).to_contain_text("Rank every response. Not placed yet: A, C")
    page.get_by_role("alert").get_by_role("link").click()
    expect(handle(page, "A")).to_be_in_viewport()
    assert order(page) == "1B"
    for letter in "CA":
        button(page, letter, "place").click()
    expect(page.locator(".ranking .error-text")).to_have_count(0)
    finish(page, 3)
    assert stored() == "B C A"


def test_the_digits_lead_to_the_ranking(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 3)
    press(page, *"4" * 15)
    expect(handle(page, "A")).to_be_focused()
    press(page, *["Enter"] * 3)
    press(page, "Control+Enter")
    expect(page.get_by_role("heading", name="No task for you right now")).to_be_visible()
    assert stored() == "A B C"


def test_a_ranking_is_revised(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 3)
    for letter in "CBA":
        button(page, letter, "place").click()
    finish(page, 3)
    page.goto(f"/assignments/{Annotation.objects.get().assignment_id}/revise/")
    assert order(page) == "1C 2B 3A"
    button(page, "A", "up").click()
    page.get_by_role("button", name="Save the change").click()
    expect(page.get_by_role("status")).to_be_visible()
    assert stored() == "C A B"


def test_a_reviewer_reads_rankings_and_settles_one(open_page: Open, talk: Project, alice: User) -> None:
    Project.objects.update(ask_preference=True, base_annotators=1, max_annotators=1)
    talk.refresh_from_db()
    task = make_task(talk, responses=3)
    one, two, three = (response.pk for response in task.responses.all())
    held = claimed(talk, alice)
    annotation.submit(held.pk, submission(task, ranking=[[three], [one, two]]), now=NOW)
    rita = make_user("rita")
    make_member(talk, rita, Role.REVIEWER)
    page = open_page(rita)
    page.goto(f"/projects/talk/review/{task.public_id}/")
    expect(page.locator(".raters")).to_contain_text("C > A = B")
    expect(page.locator("[data-placed]")).to_have_text("0 of 3 placed")
    rate_everything(page, 3, scales=15)
    for letter in "BCA":
        button(page, letter, "place").click()
    ask(page.locator(".settle .choice"))
    page.get_by_label("Somebody made a mistake").check()
    page.get_by_role("button", name="Settle and next").click()
    expect(page.get_by_role("status")).to_contain_text("settled")
    assert Adjudication.objects.get().ranking == [[two], [three], [one]]
    page.goto("/projects/talk/review/submissions/?all=1")
    expect(page.locator(".submissions")).to_contain_text("C > A = B")


@pytest.mark.parametrize(("scheme", "locale"), [("light", "en-US"), ("dark", "de-DE")])
def test_axe_finds_nothing(open_page: Open, talk: Project, alice: User, scheme: str, locale: str) -> None:
    page = opened(open_page, alice, 4, color_scheme=scheme, locale=locale)
    assert violations(page) == []
    for letter in "ABD":
        button(page, letter, "place").click()
    button(page, "B", "tie").click()
    assert violations(page) == []
