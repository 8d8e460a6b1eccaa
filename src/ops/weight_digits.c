#include "ops/weight_digits.h"

#include "kernels/nbits.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* x as integers times *factor, a power of two: the largest at least 2^22 and no more than three digits can
 * say. False when that would leave the range of floats. */
static bool to_integers(const float *x, size_t n, int32_t *out, float *factor)
{
    enum {
        FRACTION = 23,
        BIAS = 127,
        LARGEST = 0x7efefe /* fraction of the largest that three digits say */
    };
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t size = bits_of(x[i]) & 0x7fffffff;
        most = size > most ? size : most;
    }
    *factor = 0;
    memset(out, 0, n * sizeof *out);
    if (most == 0)
        return true;
    if (most < bits_of(0x1p-90f) || most > bits_of(0x1p90f))
        return false;
    int up = 22 - ((int)(most >> FRACTION) - BIAS) - ((most & 0x7fffff) > LARGEST);
    float by = ldexpf(1, up);
    for (size_t i = 0; i < n; i++) {
        float scaled = x[i] * by;
        out[i] = (int32_t)(scaled + (scaled < 0 ? -0.5f : 0.5f));
    }
    *factor = ldexpf(1, -up);
    return true;
}

/* Digits of n integers. */
static void put_digits(const int32_t *x, size_t n, size_t in_byte, int8_t *out)
{
    for (const int32_t *end = x + n; x < end; x += 4 * in_byte)
        for (size_t t = 0; t < in_byte; t++, out += 4 * DQ_NBITS_DIGITS)
            for (size_t i = 0; i < 4; i++) {
                int32_t value = x[t + in_byte * i];
                for (size_t e = 0; e < DQ_NBITS_DIGITS; e++) {
                    int32_t digit = ((value + 128) & 255) - 128;
                    out[4 * e + i] = (int8_t)digit;
                    value = (value - digit) / 256;
                }
            }
}

bool dq_weight_digits(const float *x, size_t n, size_t in_byte, float *factor, float *sum, int8_t *digits)
{
    int32_t whole[DQ_NBITS_PIECE], all = 0;
    if (!to_integers(x, n, whole, factor))
        return false;
    for (size_t i = 0; i < n; i++)
        all += whole[i];
    *sum = (float)all * *factor;
    put_digits(whole, n, in_byte, digits);
    return true;
}
