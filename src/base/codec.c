/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec.h"

/* The meaning of the exponent of all ones, and the encoding of infinity and NaN. */
typedef enum special {
    SPECIAL_IEEE,  /* Infinity and NaN. */
    SPECIAL_FN,    /* Numbers, except the pattern of all ones, which is NaN; no infinity. */
    SPECIAL_FNUZ,  /* Numbers; the pattern of -0 is the only NaN; no infinity. */
    SPECIAL_FINITE /* Numbers; neither infinity nor NaN: ONNX's node tests expect -0 for NaN. */
} special;

typedef struct format {
    uint8_t exp_bits, man_bits; /* After one sign bit. */
    uint8_t special;
    int16_t bias;
    uint32_t nan;           /* Encoding of a positive NaN; a negative one flips the sign bit. */
    bool saturates, always; /* saturates: obeys `saturate`; always: saturates in any case. */
} format;

static const format formats[DQ_DTYPE_COUNT] = {
    [DQ_FLOAT16] = {5, 10, SPECIAL_IEEE, 15, 0x7e00, false, false},
    [DQ_FLOAT8E4M3FN] = {4, 3, SPECIAL_FN, 7, 0x7f, true, false},
    [DQ_FLOAT8E4M3FNUZ] = {4, 3, SPECIAL_FNUZ, 8, 0x80, true, false},
    [DQ_FLOAT8E5M2] = {5, 2, SPECIAL_IEEE, 15, 0x7e, true, false},
    [DQ_FLOAT8E5M2FNUZ] = {5, 2, SPECIAL_FNUZ, 16, 0x80, true, false},
    [DQ_FLOAT4E2M1] = {2, 1, SPECIAL_FINITE, 1, 0x8, true, true},
    [DQ_FLOAT6E2M3] = {2, 3, SPECIAL_FINITE, 1, 0x20, true, true},
    [DQ_FLOAT6E3M2] = {3, 2, SPECIAL_FINITE, 3, 0x20, true, true},
};

static uint32_t bits_of(float x)
{
    union {
        float f;
        uint32_t u;
    } v = {.f = x};
    return v.u;
}

static float float_of(uint32_t bits)
{
    union {
        uint32_t u;
        float f;
    } v = {.u = bits};
    return v.f;
}

/* ---- Decoding ----------------------------------------------------------------------------------------- */

/* The magnitude of a finite pattern without its sign. All numbers of the small formats are normal floats. */
static float magnitude(const format *f, uint32_t bits)
{
    uint32_t exponent = bits >> f->man_bits, mantissa = bits & ((1u << f->man_bits) - 1);
    if (exponent == 0)
        return (float)mantissa * float_of((uint32_t)(127 + 1 - f->bias - f->man_bits) << 23);
    return float_of((exponent + 127 - (uint32_t)f->bias) << 23 | mantissa << (23 - f->man_bits));
}

static float decode(const format *f, uint32_t bits)
{
    uint32_t sign_bit = 1u << (f->exp_bits + f->man_bits);
    uint32_t sign = bits & sign_bit ? 0x80000000u : 0;
    uint32_t rest = bits & (sign_bit - 1);
    uint32_t infinity = sign_bit - (1u << f->man_bits); /* The exponent of all ones. */
    switch ((special)f->special) {
    case SPECIAL_IEEE:
        if (rest >= infinity)
            return float_of(sign | 0x7f800000u | (rest > infinity ? 0x00400000u : 0) |
                            (rest - infinity) << (23 - f->man_bits));
        break;
    case SPECIAL_FN:
        if (rest == sign_bit - 1)
            return float_of(sign | 0x7fc00000u);
        break;
    case SPECIAL_FNUZ:
        if (sign && rest == 0)
            return float_of(0x7fc00000u);
        break;
    case SPECIAL_FINITE:
        break;
    }
    return float_of(sign | bits_of(magnitude(f, rest)));
}

/* e8m0 encodes powers of two from 2^-127, which is a denormal float, to 2^127; the last pattern is NaN. */
static float decode_e8m0(uint32_t bits)
{
    if (bits == 0xff)
        return float_of(0x7fc00000u);
    return float_of(bits ? bits << 23 : 0x00400000u);
}

float dq_f16_to_f32(uint16_t bits)
{
    return decode(&formats[DQ_FLOAT16], bits);
}

float dq_decode_float(dq_dtype dtype, uint32_t bits)
{
    switch (dtype) {
    case DQ_FLOAT:
        return float_of(bits);
    case DQ_BFLOAT16:
        return dq_bf16_to_f32((uint16_t)bits);
    case DQ_FLOAT8E8M0:
        return decode_e8m0(bits & 0xff);
    default:
        return decode(&formats[dtype], bits);
    }
}

/* ---- Encoding ----------------------------------------------------------------------------------------- */

/* Rounds a finite magnitude to a pattern as if the exponent had no upper limit. Adding a power of two, whose
 * last bit is the last one that the format keeps for this magnitude, rounds. For denormal numbers that bit is
 * the format's smallest number. Magnitudes from `beyond` on are out of range in all formats. */
static inline uint32_t round_magnitude(const format *f, uint32_t bits)
{
    const int32_t normal = (int32_t)(127 + 1 - f->bias) << 23, beyond = (127 + 64) << 23;
    int32_t rest = (int32_t)bits < beyond ? (int32_t)bits : beyond;
    int32_t binade = rest & 0x7f800000, least = binade > normal ? binade : normal;
    int32_t power = least + (int32_t)((23u - f->man_bits) << 23);
    uint32_t sum = bits_of(float_of((uint32_t)rest) + float_of((uint32_t)power));
    return sum - (uint32_t)power + ((uint32_t)(least - normal) >> (23u - f->man_bits));
}

static inline uint32_t encode(const format *f, float x, bool saturate)
{
    uint32_t bits = bits_of(x), rest = bits & 0x7fffffffu;
    uint32_t sign_bit = 1u << (f->exp_bits + f->man_bits);
    uint32_t sign = bits >> 31 ? sign_bit : 0;
    uint32_t infinity = sign_bit - (1u << f->man_bits);
    uint32_t largest = sign_bit - 1;
    if (f->special == SPECIAL_IEEE)
        largest = infinity - 1;
    else if (f->special == SPECIAL_FN)
        largest--;
    if (rest > 0x7f800000u)
        return f->special == SPECIAL_FNUZ ? f->nan : sign ^ f->nan;
    uint32_t code = rest == 0x7f800000u ? largest + 1 : round_magnitude(f, rest);
    if (code > largest) {
        if (f->always || (f->saturates && saturate))
            code = largest;
        else if (f->special == SPECIAL_IEEE)
            code = infinity;
        else
            return f->special == SPECIAL_FNUZ ? f->nan : sign ^ f->nan;
    }
    if (code == 0 && f->special == SPECIAL_FNUZ)
        return 0; /* There is no -0. */
    return sign | code;
}

/* Drops the sign: ONNX does not define negative numbers, and its reference evaluator uses the magnitude.
 * Values outside of [2^-127, 2^127] before rounding are out of range, as in the table of Cast-28. */
static uint32_t encode_e8m0(float x, bool saturate, dq_round round)
{
    uint32_t rest = bits_of(x) & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return 0xff;
    if (rest > 0x7f000000u)
        return saturate ? 0xfe : 0xff;
    if (rest < 0x00400000u)
        return saturate ? 0 : 0xff;
    /* Between 2^-127 and 2^-126, which are denormal floats, the upper half of the mantissa begins one bit
     * lower. */
    uint32_t one = rest < 0x00800000u ? 0x00400000u : 0x00800000u;
    uint32_t code = rest >> 23, fraction = rest & (one - 1);
    switch (round) {
    case DQ_ROUND_UP:
        return code + (fraction != 0);
    case DQ_ROUND_NEAREST:
        return code + (fraction >= one >> 1);
    default:
        return code;
    }
}

uint16_t dq_f32_to_f16(float x)
{
    uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffffu) >
        0x7f800000u) /* As the conversion instructions of x86 and Arm do: quiet and truncated. */
        return (uint16_t)(0x7e00u | (bits >> 16 & 0x8000u) | (bits >> 13 & 0x3ffu));
    return (uint16_t)encode(&formats[DQ_FLOAT16], x, false);
}

uint16_t dq_f32_to_bf16(float x)
{
    uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits >> 16 & 0x8000u) | 0x7fc0u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

uint32_t dq_encode_float(dq_dtype dtype, float x, bool saturate, dq_round round)
{
    switch (dtype) {
    case DQ_FLOAT:
        return bits_of(x);
    case DQ_FLOAT16:
        return dq_f32_to_f16(x);
    case DQ_BFLOAT16:
        return dq_f32_to_bf16(x);
    case DQ_FLOAT8E8M0:
        return encode_e8m0(x, saturate, round);
    default:
        return encode(&formats[dtype], x, saturate);
    }
}

/* ---- Rows: the same without branches, for compilers to vectorize -------------------------------------- */

bool dq_codec_has_rows(dq_dtype dtype)
{
    return dtype == DQ_FLOAT8E4M3FN || dtype == DQ_FLOAT8E4M3FNUZ || dtype == DQ_FLOAT8E5M2 ||
           dtype == DQ_FLOAT8E5M2FNUZ;
}

/* Decodes a byte. Patterns from `limit` on, without sign, are no finite numbers: `limit` itself gives
 * `first`, larger ones NaN. A pattern shifted to a float's mantissa and exponent is the number times a power
 * of two, denormals included. */
static inline float decode_byte(const format *f, uint32_t bits, uint32_t limit, uint32_t first)
{
    unsigned up = 23u - f->man_bits;
    uint32_t rest = bits & 0x7f, sign = (bits & 0x80) << 24;
    uint32_t value = bits_of(float_of(rest << up) * float_of((uint32_t)(254 - f->bias) << 23));
    uint32_t odd = rest == limit ? first : 0x7fc00000u | (rest - limit) << up;
    return float_of(sign | (rest >= limit ? odd : value));
}

void dq_decode_bytes(dq_dtype dtype, const uint8_t *x, size_t n, float *y)
{
    const format f = formats[dtype];
    if (f.special == SPECIAL_IEEE)
        for (size_t i = 0; i < n; i++)
            y[i] = decode_byte(&f, x[i], 0x80u - (1u << f.man_bits), 0x7f800000u);
    else if (f.special == SPECIAL_FN)
        for (size_t i = 0; i < n; i++)
            y[i] = decode_byte(&f, x[i], 0x7f, 0x7fc00000u);
    else
        for (size_t i = 0; i < n; i++) {
            uint32_t value = bits_of(decode_byte(&f, x[i], 0x80, 0));
            y[i] = float_of(x[i] == 0x80 ? 0x7fc00000u : value);
        }
}

void dq_encode_bytes(dq_dtype dtype, const float *x, size_t n, bool saturate, uint8_t *y)
{
    const format f = formats[dtype];
    bool unsigned_zero = f.special == SPECIAL_FNUZ;
    uint32_t infinity = 0x80u - (1u << f.man_bits);
    uint32_t largest = f.special == SPECIAL_IEEE ? infinity - 1 : f.special == SPECIAL_FN ? 0x7e : 0x7f;
    uint32_t beyond = saturate ? largest : f.special == SPECIAL_IEEE ? infinity : f.nan;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(x[i]), rest = bits & 0x7fffffffu, sign = bits >> 24 & 0x80;
        uint32_t code = round_magnitude(&f, rest < 0x7f800000u ? rest : 0x7f7fffffu);
        code = code > largest ? beyond : code;
        code = rest > 0x7f800000u ? f.nan : code;
        bool bare = unsigned_zero && (code == 0 || code == f.nan); /* Unchanged: no -0. */
        y[i] = (uint8_t)(bare ? code : sign ^ code);
    }
}

void dq_encode_bf16(const float *x, size_t n, uint16_t *y)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(x[i]), rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
        uint32_t nan = (bits >> 16 & 0x8000u) | 0x7fc0u;
        y[i] = (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
    }
}

float dq_round_to_odd(double x)
{
    float nearest = (float)x;
    if ((double)nearest == x || x != x)
        return nearest;
    uint32_t bits = bits_of(nearest);
    double back = (double)nearest;
    if ((x < 0 ? -back : back) > (x < 0 ? -x : x))
        bits--; /* Toward zero: also from infinity to the largest number, and from the smallest to zero. */
    return float_of(bits | 1);
}
