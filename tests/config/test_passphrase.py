"""Operators' passphrases: one stored form, a check that neither raises nor tells who exists."""

from time import process_time

import pytest

from carnet_broker.config.passphrase import check_passphrase, hash_passphrase, is_passphrase_hash

SALT = bytes(range(16))
STORED = hash_passphrase("correct horse", SALT)


def test_the_right_passphrase_and_no_other_is_accepted() -> None:
    assert check_passphrase("correct horse", STORED)
    for wrong in ("correct horse ", "Correct horse", "", "correct", "x" * 2000, "\ud800"):
        assert not check_passphrase(wrong, STORED)


def test_the_stored_form_names_its_cost_and_salt() -> None:
    assert STORED.startswith("scrypt$32768$8$1$")
    assert is_passphrase_hash(STORED)
    assert hash_passphrase("correct horse", SALT[::-1]) != STORED


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "",
        "correct horse",
        STORED.replace("32768", "1024"),  # too cheap
        STORED.replace("32768", "32767"),  # no power of two
        STORED.replace("32768", "4194304"),  # more memory than is given
        STORED.replace("$8$", "$0$"),
        STORED.replace("$1$", "$9$"),
        STORED + "\n",
        STORED[:-1],
        STORED.replace("scrypt", "md5"),
    ],
)
def test_what_is_no_usable_form_accepts_nothing(stored: str | None) -> None:
    assert not check_passphrase("correct horse", stored)
    assert stored is None or not is_passphrase_hash(stored)


def test_an_unknown_operator_costs_the_work_of_a_known_one() -> None:
    def work(stored: str | None) -> float:
        begun = process_time()
        check_passphrase("wrong", stored)
        return process_time() - begun

    known, unknown = min(work(STORED) for _ in range(4)), min(work(None) for _ in range(4))
    assert known / 4 < unknown < known * 4  # without the work it would be a thousandth


@pytest.mark.parametrize(("passphrase", "salt"), [("", SALT), ("x" * 1025, SALT), ("x", b"short"), ("x", bytes(65))])
def test_a_weak_salt_or_no_passphrase_is_refused(passphrase: str, salt: bytes) -> None:
    with pytest.raises(ValueError, match="must have"):
        hash_passphrase(passphrase, salt)
