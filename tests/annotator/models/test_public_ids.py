"""The numbers of tasks and responses outside."""

import itertools

from django.conf import LazySettings
from hypothesis import given
from hypothesis import strategies as st

from annotator.models.public_ids import LARGEST, TaskIdConverter, response_number, response_of, task_number, task_of

keys = st.integers(0, LARGEST)


@given(pk=keys)
def test_there_and_back(pk: int) -> None:
    assert task_of(task_number(pk)) == pk
    assert response_of(response_number(pk)) == pk


@given(number=keys)
def test_every_number_stands_for_one_row(number: int) -> None:
    pk = task_of(number)
    assert pk is not None
    assert task_number(pk) == number


def test_what_was_imported_together_does_not_stand_together() -> None:
    numbers = [task_number(pk) for pk in range(1, 1001)]
    rising = sum(one < other for one, other in itertools.pairwise(numbers))
    assert 400 < rising < 600
    assert min(abs(one - other) for one, other in itertools.pairwise(numbers)) > 1_000


def test_a_task_and_its_response_have_nothing_in_common() -> None:
    assert all(task_number(pk) != response_number(pk) for pk in range(1000))


def test_another_installation_has_other_numbers(settings: LazySettings) -> None:
    settings.SECRET_KEY = "one " * 20
    first = [task_of(number) for number in range(20)]
    settings.SECRET_KEY = "other " * 20
    assert not set(first) & {task_of(number) for number in range(20)}


def test_what_is_no_number_stands_for_nothing() -> None:
    assert task_of(-1) is task_of(LARGEST + 1) is response_of(LARGEST + 1) is None


def test_an_address_holds_the_number() -> None:
    converter = TaskIdConverter()
    assert converter.to_python(converter.to_url(17)) == 17
