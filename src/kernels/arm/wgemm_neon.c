#include "kernels/arm/vec_neon.h"

#define ISA(name) name##_neon

#include "kernels/wgemm_body.h"
