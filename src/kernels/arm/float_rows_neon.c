#include "kernels/arm/vec_neon.h"

#include <math.h>

#include "kernels/float_pool_body.h"
#include "kernels/float_rows_body.h"
#include "kernels/kernels.h"

const dq_float_rows dq_float_rows_neon = FLOAT_ROWS;
const dq_float_pool dq_float_pool_neon = FLOAT_POOL;
