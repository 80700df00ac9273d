"""What must not run side by side does not."""

import os

import pytest

by_several_workers = pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="one worker runs everything")


@pytest.mark.xdist_group("scoring")
@by_several_workers
def test_a_group_keeps_its_tests_in_one_worker(request: pytest.FixtureRequest) -> None:
    """Its name in the node's is all that pytest-xdist goes by; a pytest that drops it drops the group."""
    assert request.node.nodeid.endswith("@scoring")


@pytest.fixture(scope="module")
def server() -> None:
    """Stands for one that takes long to start."""


@by_several_workers
def test_what_a_module_shares_is_started_in_one_worker(request: pytest.FixtureRequest, server: None) -> None:
    assert request.node.nodeid.endswith("@tests/test_side_by_side.py")
