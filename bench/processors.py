# SPDX-License-Identifier: Apache-2.0
"""What /proc/cpuinfo says of this processor."""

import os
from pathlib import Path

import as_level

CPUINFO = Path("/proc/cpuinfo")
ZEN = {(23, False): "Zen 1 or 2", (25, False): "Zen 3", (25, True): "Zen 4", (26, True): "Zen 5"}  # by cpuid's family, and AVX-512 or not


def facts_of(cpuinfo):
    """The lines of /proc/cpuinfo about the first processor, by their keys."""
    facts = {}
    for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    return facts


def flags_of(facts):
    return set(facts.get("flags", "").split())


def processor(level=os.environ.get(as_level.LEVEL), cpuinfo=CPUINFO):
    """The model's name. Virtual machines often hide an AMD model but not its family, which is then added, or hide AMX."""
    facts = facts_of(cpuinfo)
    name, family, flags = facts.get("model name", "unknown"), facts.get("cpu family", ""), flags_of(facts)
    generation = ZEN.get((int(family), "avx512f" in flags)) if name == "AMD EPYC" else None
    name += f" ({generation})" if generation else ""
    if level:
        return f"{name} as {as_level.LEVELS[level]}"
    return name + (" without AMX" if name.startswith("Intel") and "avx512_fp16" in flags and "amx_tile" not in flags else "")


def has_dot_products(cpuinfo=CPUINFO):
    """Whether ONNX Runtime multiplies bytes without saturating pairs: not on x86 before VNNI."""
    flags = flags_of(facts_of(cpuinfo))
    return "avx2" not in flags or bool(flags & {"avx_vnni", "avx512_vnni"})
