/* sign/address.c: see address.h */
#include "sign/address.h"

#include <ctype.h>
#include <string.h>

#include "sign/keccak.h"

void
sign_address_text(const uint8_t address[TX_ADDRESS], char out[SIGN_ADDRESS_TEXT + 1])
{
    uint8_t hash[KECCAK_SIZE];

    out[0] = '0';
    out[1] = 'x';
    str_hex(address, TX_ADDRESS, out + 2);
    keccak256(out + 2, 2 * TX_ADDRESS, hash);
    for (size_t i = 0; i < 2 * (size_t)TX_ADDRESS; i++)
        if ((hash[i / 2] >> (i % 2 == 0 ? 4 : 0) & 0x0f) >= 8)
            out[2 + i] = (char)toupper((unsigned char)out[2 + i]);
}

bool
sign_address_parse(struct str s, uint8_t out[TX_ADDRESS])
{
    char right[SIGN_ADDRESS_TEXT + 1];
    uint8_t address[TX_ADDRESS];
    bool small = false, large = false;

    if (s.n != SIGN_ADDRESS_TEXT || s.p[0] != '0' || s.p[1] != 'x' ||
        !str_unhex((struct str){ s.p + 2, s.n - 2 }, address))
        return false;
    for (size_t i = 2; i < s.n; i++) {
        small = small || s.p[i] >= 'a';
        large = large || (s.p[i] >= 'A' && s.p[i] < 'a');
    }
    sign_address_text(address, right);
    if (small && large && memcmp(right, s.p, s.n) != 0)
        return false;
    memcpy(out, address, TX_ADDRESS);
    return true;
}
