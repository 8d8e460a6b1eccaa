/* MaxPool of planes row by row, for compilers to vectorize: the usual case of max pooling. */
#ifndef DQ_OPS_POOL_ROWS_H
#define DQ_OPS_POOL_ROWS_H

#include "ops/conv_shape.h"
#include "ops/op.h"

/** Whether dq_max_rows takes this: two spatial axes, no dilation, float, uint8 or int8, rows not too long. */
bool dq_max_rows_fits(const dq_window *w, dq_dtype dtype);

/** Output rows begin … end - 1, counted through all planes. Padding is never a maximum, a window without an
 * element gives the type's lowest value, one with a NaN gives NaN. Of zeros of both signs either may come
 * out. */
void dq_max_rows(const dq_window *w, dq_dtype dtype, const void *in, void *out, size_t begin, size_t end);

#endif
