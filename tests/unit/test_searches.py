"""Searches go to the address that all else goes to."""

from __future__ import annotations

import pytest

from memctl.infra.vectors.searches import address_of


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://vectors.example", "https://vectors.example:6333"),
        ("https://vectors.example:443", "https://vectors.example:443"),
        ("http://vectors.example:80/qdrant", "http://vectors.example:80/qdrant"),
        ("https://vectors.example/qdrant/", "https://vectors.example:6333/qdrant/"),
        ("http://[::1]", "http://[::1]:6333"),
        ("http://127.0.0.1:41234", "http://127.0.0.1:41234"),
    ],
)
def test_a_port_that_is_named_is_taken_even_if_it_is_the_schemes_own(url: str, address: str) -> None:
    assert address_of(url) == address
