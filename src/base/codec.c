#include "base/codec.h"
