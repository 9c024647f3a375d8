"""secp256k1 as it is in a book: slow, and not cloche's."""
P = 2 ** 256 - 2 ** 32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798, 0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8)


def add(a, b):
    if a is None or b is None:
        return a or b
    if a[0] == b[0] and (a[1] + b[1]) % P == 0:
        return None
    slope = (3 * a[0] * a[0] * pow(2 * a[1], -1, P) if a == b else (b[1] - a[1]) * pow(b[0] - a[0], -1, P)) % P
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def times(k, point=G):
    out, k = None, k % N
    while k:
        out = add(out, point) if k & 1 else out
        point, k = add(point, point), k >> 1
    return out


def recover(z, r, s, parity):
    """The point whose signature it is, or None: SEC 1, 4.1.6, of the recovery ids 0 and 1."""
    if not 0 < r < N or not 0 < s < N or parity > 1:
        return None
    square = (pow(r, 3, P) + 7) % P
    y = pow(square, (P + 1) // 4, P)
    if y * y % P != square:
        return None
    y = y if y % 2 == parity else P - y
    inverse = pow(r, -1, N)
    return add(times(s * inverse, (r, y)), times(-z * inverse))


def make(z, key, k):
    """r, s (not brought to its low form) and the parity, with the nonce k."""
    x, y = times(k)
    return x % N, pow(k, -1, N) * (z + x % N * key) % N, y % 2
