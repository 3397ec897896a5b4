"""Quantities are exact numbers, as the API server reads them."""

from __future__ import annotations

import pytest

from kaigen.kubernetes.quantities import NANO, canonical, is_quantity, nano, units


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("1n", 1),
        ("1u", 1_000),
        ("1m", 1_000_000),
        ("1", NANO),
        ("1k", 10**3 * NANO),
        ("1M", 10**6 * NANO),
        ("1G", 10**9 * NANO),
        ("1T", 10**12 * NANO),
        ("1P", 10**15 * NANO),
        ("1E", 10**18 * NANO),
        ("1Ki", 2**10 * NANO),
        ("1Mi", 2**20 * NANO),
        ("1Gi", 2**30 * NANO),
        ("1Ti", 2**40 * NANO),
        ("1Pi", 2**50 * NANO),
        ("1Ei", 2**60 * NANO),
        ("1e3", 1000 * NANO),
        ("1E3", 1000 * NANO),
        ("25e-1", 2_500_000_000),
        ("1.5", 1_500_000_000),
        (".5", 500_000_000),
        ("1.", NANO),
        ("+2", 2 * NANO),
        ("-1.5Ki", -1536 * NANO),
        ("1.25Mi", 1_310_720 * NANO),
        ("0.1n", 1),
        ("1.1n", 2),
        ("1e60", 10**60 * NANO),
        ("1e-60", 1),
        (2, 2 * NANO),
        (0.25, 250_000_000),
    ],
)
def test_a_quantity_has_an_exact_value(text: object, amount: int) -> None:
    assert nano(text) == amount


@pytest.mark.parametrize(
    "value", ["", "Gi", "1 Gi", "1gi", "1KB", "1e", "1ee3", "a1", "1e61", "1e-61", "0" * 61, True, None, []]
)
def test_other_values_are_no_quantities(value: object) -> None:
    assert nano(value) is None
    assert units(value) is None


def test_a_quantity_of_sixty_characters_is_read() -> None:
    assert nano("0" * 59 + "1") == NANO


@pytest.mark.parametrize(("text", "whole"), [("1", 1), ("999m", 0), ("1500m", 1), ("-1m", -1), ("1Ki", 1024)])
def test_units_are_rounded_down(text: str, whole: int) -> None:
    assert units(text) == whole


def test_the_whole_text_is_a_quantity() -> None:
    assert is_quantity("1Gi")
    assert not is_quantity("x1Gi")
    assert not is_quantity("1Gi ")
    assert not is_quantity("1Gi\n")


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("1000m", "1"),
        ("4000M", "4G"),
        ("10240Mi", "10Gi"),
        ("0.5Gi", "512Mi"),
        ("0.5Ki", "512"),
        ("1.5", "1500m"),
        ("1500M", "1500M"),
        ("2000000", "2M"),
        ("1.5e3", "1500"),
        ("1E3", "1e3"),
        ("0Gi", "0"),
        ("1024Ei", "1024Ei"),
        ("text", "text"),
    ],
)
def test_the_canonical_form_is_that_of_the_api_server(written: str, stored: str) -> None:
    assert canonical(written) == stored
    assert nano(stored) == nano(written)
