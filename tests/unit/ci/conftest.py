"""A GitHub of our own."""

import pytest
from fake_github import GitHub


@pytest.fixture
def github():
    served = GitHub()
    yield served
    served.close()
