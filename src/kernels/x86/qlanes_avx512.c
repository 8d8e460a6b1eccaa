#include "kernels/x86/vec_avx512.h"

#include "kernels/x86/qlanes_sums.h"

const dq_qlanes dq_qlanes_avx512 = {.beats = &dq_qgemm_avx2,
                                    .interleave = dq_qlanes_interleave_avx2,
                                    .panel_size = dq_qlanes_panel_size_sse41,
                                    .pack = dq_qlanes_pack_sse41,
                                    .sums = sums,
                                    .store = dq_qlanes_store_avx2,
                                    .sure = dq_qlanes_sure_avx2,
                                    .codes = dq_qlanes_codes_avx2};
