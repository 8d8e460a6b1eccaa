/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Parameters of nbits_body.h for ISA levels that multiply bytes in
 * pairs. The file of the ISA level defines before the include
 *   add_now(sum, term)    adds 16-bit numbers */
enum { VECTORS = 2, SUMS_IN_16_BITS = 1 };
#define add_products(sum, qvalues, digits) add_now(sum, vi_pairs_8(qvalues, digits))
#define dot_s16(sum, qvalues, digits) (*(sum) = vi_add(*(sum), vi_dot_16(qvalues, digits)))
#define in_32(sum, by) ((by) == 1 ? vi_pairs_16(sum) : vi_dot_16(sum, vi_set(0x10001 * (by))))
