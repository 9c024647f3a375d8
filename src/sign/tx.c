/* sign/tx.c: see tx.h */
#include "sign/tx.h"

#include <string.h>

#include "base/array.h"

/* One letter a field, in the order in which they are encoded. */
#define F_CHAIN    'c'
#define F_NONCE    'n'
#define F_PRICE    'p'
#define F_TIP      't'
#define F_MAX_FEE  'm'
#define F_GAS      'g'
#define F_TO       'o'
#define F_VALUE    'v'
#define F_DATA     'd'
#define F_ACCESS   'a'
#define F_BLOB_FEE 'b'
#define F_BLOBS    'h'
#define F_AUTH     'u'

static const char *const fields[TX_TYPES] = {
    [TX_LEGACY] = "npgovd",
    [TX_ACCESS_LIST] = "cnpgovda",
    [TX_DYNAMIC_FEE] = "cntmgovda",
    [TX_BLOB] = "cntmgovdabh",
    [TX_SET_CODE] = "cntmgovdau",
};

/* Of secp256k1's group; and half of it (EIP-2: only the smaller of the two `s` is valid). */
static const struct u256 order = { {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
    0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
} }, half_order = { {
    0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0x5d, 0x57, 0x6e, 0x73, 0x57, 0xa4, 0x50, 0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa0,
} };

static int
tx_bad(struct err *err, const char *what)
{
    return err_set(err, ERR_POLICY, "sign.tx.invalid", "this is no valid transaction: %s", what);
}

/* --- the lists within ------------------------------------------------------------------------------------------- */

/* [address, [key of 32 bytes, ...]], ...; how many of each. */
static bool
access_valid(struct rlp list, size_t *n_addresses, size_t *n_keys)
{
    struct rlp entry, keys;
    uint8_t address[TX_ADDRESS], key[U256_SIZE];

    for (*n_addresses = *n_keys = 0; list.n > 0; ++*n_addresses) {
        if (!rlp_next_list(&list, &entry) || !rlp_next_exactly(&entry, address, sizeof(address)) ||
            !rlp_next_list(&entry, &keys) || entry.n > 0)
            return false;
        for (; keys.n > 0; ++*n_keys)
            if (!rlp_next_exactly(&keys, key, sizeof(key)))
                return false;
    }
    return *n_addresses + *n_keys <= TX_ENTRIES_MAX;
}

static bool
blobs_valid(struct rlp list)
{
    uint8_t hash[U256_SIZE];
    size_t n = 0;

    for (; list.n > 0; n++)
        if (!rlp_next_exactly(&list, hash, sizeof(hash)) || hash[0] != 0x01)
            return false;
    return n > 0 && n <= TX_ENTRIES_MAX;
}

static bool
authorizations_valid(struct rlp list, size_t *n)
{
    struct rlp entry;
    uint8_t address[TX_ADDRESS];
    struct u256 chain, r, s;
    uint64_t nonce, parity;

    for (*n = 0; list.n > 0; ++*n)
        if (!rlp_next_list(&list, &entry) || !rlp_next_u256(&entry, &chain) ||
            !rlp_next_exactly(&entry, address, sizeof(address)) || !rlp_next_number(&entry, UINT64_MAX, &nonce) ||
            !rlp_next_number(&entry, 255, &parity) || !rlp_next_u256(&entry, &r) || !rlp_next_u256(&entry, &s) ||
            entry.n > 0)
            return false;
    return *n > 0 && *n <= TX_ENTRIES_MAX;
}

/* --- what holds for every transaction --------------------------------------------------------------------------- */

static int
tx_check(const struct tx *tx, struct err *err)
{
    size_t n, keys;

    if ((unsigned)tx->type >= TX_TYPES)
        return tx_bad(err, "its type is unknown");
    if (tx->chain > TX_CHAIN_MAX || (tx->chain == 0 && tx->type != TX_LEGACY))
        return tx_bad(err, "its chain is not in 1 to 2^63 - 37");
    if (tx->nonce > TX_NONCE_MAX)
        return tx_bad(err, "its nonce is above 2^64 - 2");
    if (tx->n_data > TX_DATA_MAX)
        return tx_bad(err, "its data is larger than 128 KiB");
    if (tx->creates && (tx->type == TX_BLOB || tx->type == TX_SET_CODE))
        return tx_bad(err, "one of this type has to name whom it goes to");
    if (u256_cmp(&tx->tip, &tx->max_fee) > 0)
        return tx_bad(err, "its tip is above its highest fee");
    if (!access_valid(tx->access, &n, &keys))
        return tx_bad(err, "its access list");
    if (tx->type == TX_BLOB && !blobs_valid(tx->blobs))
        return tx_bad(err, "its blobs");
    if (tx->type == TX_SET_CODE && !authorizations_valid(tx->authorizations, &n))
        return tx_bad(err, "its authorisations");
    return 0;
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

static void
put_field(const struct tx *tx, char field, struct buf *out)
{
    switch (field) {
    case F_CHAIN: rlp_put_number(out, tx->chain); break;
    case F_NONCE: rlp_put_number(out, tx->nonce); break;
    case F_PRICE: rlp_put_u256(out, &tx->gas_price); break;
    case F_TIP: rlp_put_u256(out, &tx->tip); break;
    case F_MAX_FEE: rlp_put_u256(out, &tx->max_fee); break;
    case F_GAS: rlp_put_number(out, tx->gas); break;
    case F_TO: rlp_put_bytes(out, tx->to, tx->creates ? 0 : TX_ADDRESS); break;
    case F_VALUE: rlp_put_u256(out, &tx->value); break;
    case F_DATA: rlp_put_bytes(out, tx->data, tx->n_data); break;
    case F_ACCESS: rlp_put_list(out, tx->access.p, tx->access.n); break;
    case F_BLOB_FEE: rlp_put_u256(out, &tx->max_blob_fee); break;
    case F_BLOBS: rlp_put_list(out, tx->blobs.p, tx->blobs.n); break;
    default: rlp_put_list(out, tx->authorizations.p, tx->authorizations.n); break;
    }
}

/* What comes behind the fields. EIP-155: of a legacy one the chain is hashed too, with two zeros, or is part of `v`. */
static void
put_end(const struct tx *tx, const struct tx_signature *s, struct buf *out)
{
    struct u256 r, half;

    if (s == NULL) {
        if (tx->type == TX_LEGACY && tx->chain != 0) {
            rlp_put_number(out, tx->chain);
            rlp_put_number(out, 0);
            rlp_put_number(out, 0);
        }
        return;
    }
    memcpy(r.b, s->r, sizeof(r.b));
    memcpy(half.b, s->s, sizeof(half.b));
    if (tx->type != TX_LEGACY)
        rlp_put_number(out, s->parity);
    else
        rlp_put_number(out, s->parity + (tx->chain != 0 ? tx->chain * 2 + 35 : 27));
    rlp_put_u256(out, &r);
    rlp_put_u256(out, &half);
}

int
tx_write(const struct tx *tx, const struct tx_signature *s, struct buf *out, struct err *err)
{
    cleanup_buf struct buf items = BUF_INIT(TX_BYTES_MAX);

    if (tx_check(tx, err) < 0)
        return -1;
    for (const char *f = fields[tx->type]; *f != '\0'; f++)
        put_field(tx, *f, &items);
    put_end(tx, s, &items);
    if (tx->type != TX_LEGACY)
        (void)buf_put_u8(out, (uint8_t)tx->type);
    if (buf_ok(&items))
        rlp_put_list(out, items.p, items.n);
    if (!buf_ok(&items) || !buf_ok(out))
        return err_set(err, ERR_LIMIT, "sign.tx.too-large", "the transaction is larger than %d bytes", TX_BYTES_MAX);
    return 0;
}

int
tx_digest(const struct tx *tx, uint8_t out[TX_HASH], struct err *err)
{
    cleanup_buf struct buf bytes = BUF_INIT(TX_BYTES_MAX + 16);

    if (tx_write(tx, NULL, &bytes, err) < 0)
        return -1;
    keccak256(bytes.p, bytes.n, out);
    return 0;
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

static bool
get_to(struct tx *tx, struct rlp *from)
{
    struct rlp bytes;

    if (!rlp_next_bytes(from, &bytes) || (bytes.n != 0 && bytes.n != TX_ADDRESS))
        return false;
    tx->creates = bytes.n == 0;
    if (!tx->creates)
        memcpy(tx->to, bytes.p, TX_ADDRESS);
    return true;
}

static bool
get_data(struct tx *tx, struct rlp *from)
{
    struct rlp bytes;

    if (!rlp_next_bytes(from, &bytes))
        return false;
    tx->data = bytes.p;
    tx->n_data = bytes.n;
    return true;
}

static bool
get_field(struct tx *tx, char field, struct rlp *from)
{
    switch (field) {
    case F_CHAIN: return rlp_next_number(from, TX_CHAIN_MAX, &tx->chain);
    case F_NONCE: return rlp_next_number(from, UINT64_MAX, &tx->nonce);
    case F_PRICE: return rlp_next_u256(from, &tx->gas_price);
    case F_TIP: return rlp_next_u256(from, &tx->tip);
    case F_MAX_FEE: return rlp_next_u256(from, &tx->max_fee);
    case F_GAS: return rlp_next_number(from, UINT64_MAX, &tx->gas);
    case F_TO: return get_to(tx, from);
    case F_VALUE: return rlp_next_u256(from, &tx->value);
    case F_DATA: return get_data(tx, from);
    case F_ACCESS: return rlp_next_list(from, &tx->access);
    case F_BLOB_FEE: return rlp_next_u256(from, &tx->max_blob_fee);
    case F_BLOBS: return rlp_next_list(from, &tx->blobs);
    default: return rlp_next_list(from, &tx->authorizations);
    }
}

/* `v` of a legacy one: 27 and 28 without a chain, else twice the chain and 35 or 36. */
static bool
get_v(struct tx *tx, struct tx_signature *s, struct rlp *from)
{
    uint64_t v;

    if (!rlp_next_number(from, UINT64_MAX, &v))
        return false;
    if (tx->type != TX_LEGACY) {
        s->parity = (uint8_t)v;
        return v <= 1;
    }
    if (v != 27 && v != 28 && v < 37)
        return false;
    tx->chain = v >= 37 ? (v - 35) / 2 : 0;
    s->parity = (uint8_t)(v >= 37 ? (v - 35) % 2 : v - 27);
    return true;
}

static bool
get_end(struct tx *tx, struct tx_signature *s, struct rlp *from)
{
    struct u256 r, low;

    if (!get_v(tx, s, from) || !rlp_next_u256(from, &r) || !rlp_next_u256(from, &low) || from->n > 0)
        return false;
    memcpy(s->r, r.b, sizeof(s->r));
    memcpy(s->s, low.b, sizeof(s->s));
    return !u256_is_zero(&r) && !u256_is_zero(&low) && u256_cmp(&r, &order) < 0 && u256_cmp(&low, &half_order) <= 0;
}

int
tx_read(const uint8_t *p, size_t n, struct tx *tx, struct tx_signature *s, struct err *err)
{
    struct rlp all = { p, n }, items;

    *tx = (struct tx){ .type = TX_LEGACY };
    if (n > TX_BYTES_MAX)
        return err_set(err, ERR_LIMIT, "sign.tx.too-large", "the transaction is larger than %d bytes", TX_BYTES_MAX);
    if (n > 0 && p[0] < TX_TYPES && p[0] != TX_LEGACY) {
        tx->type = (enum tx_type)p[0];
        all = (struct rlp){ p + 1, n - 1 };
    }
    if (!rlp_next_list(&all, &items) || all.n > 0)
        return tx_bad(err, "it is not one list");
    for (const char *f = fields[tx->type]; *f != '\0'; f++)
        if (!get_field(tx, *f, &items))
            return tx_bad(err, "a field is missing, or is not encoded as it has to be");
    if (!get_end(tx, s, &items))
        return tx_bad(err, "its signature");
    return tx_check(tx, err);
}

/* --- gas -------------------------------------------------------------------------------------------------------- */

bool
tx_intrinsic_gas(const struct tx *tx, uint64_t *out)
{
    uint64_t gas = 21000;
    size_t addresses, keys, authorizations = 0;

    if (!access_valid(tx->access, &addresses, &keys) ||
        (tx->type == TX_SET_CODE && !authorizations_valid(tx->authorizations, &authorizations)))
        return false;
    for (size_t i = 0; i < tx->n_data; i++)
        gas += tx->data[i] == 0 ? 4 : 16;
    if (tx->creates)
        gas += 32000 + 2 * ((tx->n_data + 31) / 32);
    *out = gas + 2400 * addresses + 1900 * keys + 25000 * authorizations;
    return true;
}
