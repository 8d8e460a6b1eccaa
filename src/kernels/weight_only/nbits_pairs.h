/* SPDX-License-Identifier: Apache-2.0 */
/* What nbits_body.h wants of an instruction set that multiplies bytes in pairs. Before this, its file defines
 * add_now(sum, term), which adds numbers of 16 bits. */
enum { VECTORS = 2 };
#define add_products(sum, qvalues, digits) add_now(sum, vi_pairs_8(qvalues, digits))
#define dot_s16(sum, qvalues, digits) (*(sum) = vi_add(*(sum), vi_dot_16(qvalues, digits)))
#define in_32(sum, by) ((by) == 1 ? vi_pairs_16(sum) : vi_dot_16(sum, vi_set(0x10001 * (by))))
