/* Kernels of 3×3 to codes on AVX2 (qconv_codes_avx2.c). */
#ifndef DQ_KERNELS_X86_QCONV_ROW_H
#define DQ_KERNELS_X86_QCONV_ROW_H

#include "kernels/qconv.h"

dq_qconv_3x3_pack_fn dq_qconv_3x3_pack_avx2;
dq_qconv_3x3_codes_fn dq_qconv_3x3_codes_avx2;

#endif
