"""What the black-box suites share. Test modules import from here; fixtures live in tests/conftest.py."""
import pytest


def requirement(*rows):
    """Name the rows of the requirements table that a test proves; the run's summary counts them."""
    return pytest.mark.requirement(*rows)
