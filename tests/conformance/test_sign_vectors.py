"""ECDSA over secp256k1 in the classes of Wycheproof's vectors (ecdsa_secp256k1_sha256_test and its bitcoin sibling), made here: no vectors of others lie in
the tree. An arithmetic of the test's own says what is right; cloche's (src/sign/key.c) has to say the same. A flag that is named in capitals is Wycheproof's."""
import hashlib
import random
import subprocess

import pytest

from helpers import places, requirement
from helpers.curve import N, P, make as made_by, recover, times

pytestmark = requirement("R46")

KEY = int("46" * 32, 16)


def make(z, key=KEY, k=0x1234567):
    return made_by(z, key, k)


class Driver:
    """ask([(z, r, s, parity), ...]) → an address or None of each."""

    def __init__(self, program):
        self.program = program

    def lines(self, lines):
        done = subprocess.run([self.program], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.split("\n")[:-1]

    def ask(self, rows):
        said = self.lines([" ".join([f"{v % 2 ** 256:064x}" for v in row[:3]] + [str(row[3])]) for row in rows])
        assert len(said) == len(rows)
        return [None if s == "none" else s for s in said]


@pytest.fixture
def driver(binary):
    program = places.find_beside(binary, "tests/lib/sign_recover")
    if program is None:
        pytest.skip("sign_recover is not built")
    return Driver(program)


def digest(n):
    return int.from_bytes(hashlib.sha256(b"message %d" % n).digest(), "big")


def classes():
    """name → rows (z, r, s, parity)."""
    z = digest(1)
    r, s, parity = make(z)
    big = (2 ** 256 - 1, N, N + 1, P, P - 1, P + 1, 2 ** 255)
    rows = {
        "VALID": [(digest(i), *make(digest(i), k=i * i + 7)) for i in range(40)],
        "WRONG_MESSAGE": [(z ^ 1 << b, r, s, parity) for b in range(0, 256, 17)],
        "MODIFIED_R_OR_S": [(z, r ^ 1 << b, s, parity) for b in range(0, 256, 29)] + [(z, r, s ^ 1 << b, parity) for b in range(0, 256, 29)],
        "SIGNATURE_MALLEABILITY_high_s": [(z, r, N - s, parity), (z, r, N - s, 1 - parity)],
        "WRONG_RECOVERY_ID": [(z, r, s, 1 - parity), (z, r, s, 2), (z, r, s, 3), (z, r, s, 27), (z, r, s, 255)],
        "RANGE_CHECK": [(z, v, s, p) for v in big for p in (0, 1)] + [(z, r, v, p) for v in big for p in (0, 1)] +
                       [(z, v, w, p) for v in big for w in big for p in (0, 1)],
        "INVALID_SIGNATURE_zero": [(z, v, w, p) for v in (0, 1, N) for w in (0, 1, N) for p in (0, 1)],
        "SPECIAL_CASE_HASH": [(v, *make(v)) for v in (0, 1, N - 1, N, N + 1, 2 ** 256 - 1, 2 ** 255, 2 ** 128 - 1, 2 ** 128 << 100)],
        "EDGE_CASE_SMALL_K": [(z, *make(z, k=k)) for k in (1, 2, 3, N - 1, N - 2, (N - 1) // 2, (N + 1) // 2, 2 ** 128, 2 ** 255)],
        "EDGE_CASE_KEY": [(z, *make(z, key=key)) for key in (1, 2, N - 1, N - 2, (N + 1) // 2, 2 ** 128)],
        "SMALL_R_AND_S": [(z, v, w, p) for v in range(1, 8) for w in (1, 2, N - 1, (N - 1) // 2, (N + 1) // 2) for p in (0, 1)],
        "POINT_DUPLICATION": [],
        "POINT_AT_INFINITY": [],
        "ARITHMETIC_ERROR": [],
    }
    # s R = z G: what is recovered is no point; and R = G or -G, where the two sums are of one point
    for k in (1, 2, 5, 77):
        x, y = times(k)
        rows["POINT_AT_INFINITY"].append((k * 99 % N, x % N, 99, y % 2))
        rows["POINT_DUPLICATION"].append((N - k * 99 % N, x % N, 99, y % 2))
    draw = random.Random(46)
    for _ in range(60):     # long runs of ones and zeros, where carries are
        a, b, c = (((1 << draw.randrange(1, 257)) - (1 << draw.randrange(0, 200))) % 2 ** 256 for _ in range(3))
        rows["ARITHMETIC_ERROR"].append((a, b % N or 1, c % N or 1, draw.randrange(2)))
    return rows


ROWS = classes()


@pytest.mark.parametrize("name", ROWS)
def test_whose_signature_it_is(driver, name):
    """Recovered or not as the arithmetic says; and of a point that the arithmetic names, its own address and no other's."""
    rows = ROWS[name]
    said = driver.ask(rows)
    wanted = [recover(*row) for row in rows]
    assert [s is None for s in said] == [w is None for w in wanted], [row for row, s, w in zip(rows, said, wanted) if (s is None) != (w is None)]
    # the same point has the same address: another signature by arithmetic of k G is of nobody else
    by_point = {}
    for point, one in zip(wanted, said):
        assert by_point.setdefault(point, one) == one
    assert len(set(by_point.values())) == len(by_point), "two points with one address"


def test_the_keys_own_address(driver):
    """Of the example of EIP-155: it is what the valid ones recover to."""
    said = driver.ask(ROWS["VALID"] + ROWS["EDGE_CASE_SMALL_K"] + ROWS["SPECIAL_CASE_HASH"])
    assert set(said) == {"9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f"}, set(said)


def test_what_is_signed(driver):
    """Low s, the nonce of RFC 6979 (the golden one of EIP-155), and valid by the arithmetic; what is no key signs nothing."""
    hashes = [0, 1, N - 1, N, 2 ** 256 - 1, 0xdaf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53, *(digest(i) for i in range(20))]
    said = driver.lines([f"sign {KEY:064x} {z:064x}" for z in hashes])
    point = times(KEY)
    for z, line in zip(hashes, said):
        r, s, parity = (int(w, 16) for w in line.split())
        assert 0 < s <= N // 2 and recover(z, r, s, parity) == point, line
    assert said[5].startswith("28ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276 67cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83")
    assert driver.lines([f"sign {key:064x} {1:064x}" for key in (0, N, N + 1, 2 ** 256 - 1)]) == ["none"] * 4
