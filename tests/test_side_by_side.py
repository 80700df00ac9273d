"""What must not run side by side does not."""

import os

import pytest


@pytest.mark.xdist_group("training")
@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="one worker runs everything")
def test_a_group_keeps_its_tests_in_one_worker(request: pytest.FixtureRequest) -> None:
    """Its name in the node's is all that pytest-xdist goes by; a pytest that drops it drops the group."""
    assert request.node.nodeid.endswith("@training")
