"""Whether digits that look like personal data are: dates and check digits, where a shape has them."""

import ipaddress
from collections.abc import Callable
from datetime import date

from memctl.domain.support import patterns

_FIRST_YEARS = {1: 1900, 2: 1900, 3: 2000, 4: 2000, 5: 1900, 6: 1900, 7: 2000, 8: 2000}
"""Of Korean resident numbers: which century the digit after the date stands for."""


def resident_number(text: str) -> bool:
    """A Korean resident or alien registration number: a date of birth that is one. (Those of since 2020 have no check
    digit.) Without a separator, only what has the older check digit: thirteen digits are often a time."""
    digits = _digits(text)
    try:
        date(_FIRST_YEARS[int(digits[6])] + int(digits[:2]), int(digits[2:4]), int(digits[4:6]))
    except (ValueError, KeyError):
        return False
    if not text.isdigit():
        return True
    weights = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
    left = (11 - sum(int(d) * w for d, w in zip(digits, weights, strict=False)) % 11) % 10
    return left == int(digits[12])


def social_security_number(text: str) -> bool:
    """One that the United States give out: no area 000, 666 or from 900 on, no group 00, no serial 0000."""
    area, group, serial = _APART.split(text)
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def payment_card(text: str) -> bool:
    """Twelve to nineteen digits with a Luhn check digit, of an issuer of cards, not all alike."""
    digits = _digits(text)
    issued = digits[0] in "23456" or digits.startswith("1800")
    if not 12 <= len(digits) <= 19 or not issued or len(set(digits)) < 2:
        return False
    doubled = (int(d) * 2 if n % 2 else int(d) for n, d in enumerate(reversed(digits)))
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def iban(text: str) -> bool:
    """ISO 13616: the country and check digits moved to the end, letters as numbers, is 1 modulo 97."""
    plain = _APART.sub("", text).upper()
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


def phone_number(text: str) -> bool:
    """Seven to fifteen digits (E.164), not all alike, and no date."""
    digits = _digits(text.partition("x")[0])
    return 7 <= len(digits) <= 15 and len(set(digits)) > 2 and not _DATE.match(text)


def public_address(text: str) -> bool:
    """An IPv4 address that is somebody's: neither of a private network nor reserved."""
    try:
        return ipaddress.IPv4Address(text).is_global
    except ValueError:
        return False


def public_address_6(text: str) -> bool:
    """An IPv6 address that is somebody's: neither of a private network nor reserved, nor for examples."""
    try:
        return ipaddress.IPv6Address(text).is_global
    except ValueError:
        return False


_TESTS = (
    resident_number, social_security_number, payment_card, iban, phone_number, public_address, public_address_6,
)  # fmt: skip
CHECKS: dict[str, Callable[[str], bool]] = {each.__name__: each for each in _TESTS}


_APART = patterns.compile(r"[\s\u00a0\u2010-\u2013\u202f-]+")
"""What stands between groups of digits."""
_DATE = patterns.compile(r"(?:19|20)\d\d[ .-]\d\d[ .-]\d\d")


def _digits(text: str) -> str:
    return "".join(c for c in text if c.isdigit())
