#include "kernels/arm/vec_neon.h"

#include <math.h>

#include "kernels/float_rows_body.h"
#include "kernels/kernels.h"

const dq_float_rows dq_float_rows_neon = FLOAT_ROWS;
