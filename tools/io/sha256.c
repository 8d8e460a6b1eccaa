/* SPDX-License-Identifier: Apache-2.0 */
#include "io/sha256.h"

#include <string.h>

/* FIPS 180-4, section 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64
 * primes. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* Section 5.3.3: the same of the square roots of the first 8 primes. */
static const uint32_t initial_state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static uint32_t rotate_right(uint32_t x, unsigned by)
{
    return x >> by | x << (32 - by);
}

/* Section 6.2.2. */
static void process_block(uint32_t state[8], const uint8_t block[64])
{
    uint32_t w[64], s[8];
    for (size_t t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (size_t t = 16; t < 64; t++) {
        const uint32_t a = w[t - 15], b = w[t - 2];
        const uint32_t sigma0 = rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3;
        const uint32_t sigma1 = rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10;
        w[t] = sigma1 + w[t - 7] + sigma0 + w[t - 16];
    }
    memcpy(s, state, sizeof s); /* a to h */
    for (size_t t = 0; t < 64; t++) {
        const uint32_t sum1 = rotate_right(s[4], 6) ^ rotate_right(s[4], 11) ^ rotate_right(s[4], 25);
        const uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        const uint32_t sum0 = rotate_right(s[0], 2) ^ rotate_right(s[0], 13) ^ rotate_right(s[0], 22);
        const uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        const uint32_t t1 = s[7] + sum1 + choice + round_constants[t] + w[t], t2 = sum0 + majority;
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (size_t i = 0; i < 8; i++)
        state[i] += s[i];
}

void sha256_start(sha256 *hash)
{
    *hash = (sha256){.size = 0};
    memcpy(hash->state, initial_state, sizeof initial_state);
}

void sha256_add(sha256 *hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    size_t filled = hash->size % sizeof hash->block;
    hash->size += size;
    while (size) {
        const size_t part = size < sizeof hash->block - filled ? size : sizeof hash->block - filled;
        memcpy(hash->block + filled, at, part);
        at += part;
        size -= part;
        filled += part;
        if (filled == sizeof hash->block) {
            process_block(hash->state, hash->block);
            filled = 0;
        }
    }
}

const char *sha256_finish(sha256 *hash, char text[SHA256_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    static const uint8_t padding[64] = {0x80};
    const uint64_t bits = hash->size * 8;
    const size_t filled = hash->size % 64;
    uint8_t length[8];
    for (size_t i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(hash, padding, filled < 56 ? 56 - filled : 120 - filled); /* section 5.1.1 */
    sha256_add(hash, length, sizeof length);
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        const uint8_t byte = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
        text[2 * i] = digits[byte >> 4];
        text[2 * i + 1] = digits[byte & 15];
    }
    text[2 * SHA256_BYTES] = 0;
    return text;
}
