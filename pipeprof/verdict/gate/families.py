"""Families of GPU kernels: names without what another library version or tile size changes. Pure."""

from __future__ import annotations

import re

# Wrappers whose argument says what is computed, not the wrapper.
_WRAPPED = re.compile(r"^(?:void )?cutlass(?:__\w+__)?::(?:Kernel\w*|device_kernel)<(?P<inner>[\w:]+)")
_NCCL = re.compile(r"^nccl(?:Dev)?Kernel_(?P<what>[A-Za-z]+?)_")
_MEM = re.compile(r"^(?P<what>Mem(?:cpy \w+|set))\b")
_TRITON = re.compile(r"^(?P<what>triton_.*?)_\d+\w*$")
# `_64x64_32x6_tn_align4`, `_tilesize128x64x32_stage3`, `_128x64_nn`: from the first tile on; else a hash at the end.
_TILE = re.compile(r"_(?:tilesize)?\d+x\d+.*$")
_HASH = re.compile(r"_(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}(?:_\d+)?$")
_ARCH = re.compile(r"^cutlass_\d+_")
_LAMBDA = re.compile(r"\{lambda.*$")
_GEMM = re.compile(r"^(?P<what>.*?gemm)(?:_[a-z]+\d+[a-z0-9]*)*(?:_[tn]{1,2}){0,3}$")


def family(name: str) -> str:
    """The family of an operator's name; the name itself of all that is no GPU kernel or copy.

    Template and call arguments, tile sizes, layouts and hashes are left out: `void f<4, g<float> >(int)` is `f`,
    `ampere_sgemm_128x64_nn` is `ampere_sgemm`, `Memcpy DtoD (Device -> Device)` is `Memcpy DtoD`.
    """
    for pattern, words in ((_NCCL, "nccl {}"), (_MEM, "{}"), (_TRITON, "{}")):
        if match := pattern.match(name):
            return words.format(match["what"])
    wrapped = _WRAPPED.match(name)
    if wrapped:
        return _untiled(wrapped["inner"])
    if _is_function(name):
        return _function(name)
    return _untiled(name) if "/" not in name and "::" not in name else name


def _is_function(name: str) -> bool:
    """Whether it reads as a C++ signature: with a return type or arguments. `aten::add` and scopes do not."""
    return name.startswith("void ") or (name.endswith(")") and "(" in name and "::" in name)


def _function(name: str) -> str:
    """The function's name: without return type, namespaces, template and call arguments."""
    text = name.removeprefix("void ").replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    depth, signs = 0, []
    for sign in text:
        if sign == "(" and depth == 0:
            break
        depth += (sign == "<") - (sign == ">" and depth > 0)
        if depth == 0 and sign != ">":
            signs.append(sign)
    return _LAMBDA.sub("", "".join(signs)).strip().rpartition("::")[2] or name


def _untiled(name: str) -> str:
    text = _ARCH.sub("cutlass_", _HASH.sub("", _TILE.sub("", name)))
    match = _GEMM.match(text)
    return (match["what"] if match else text) or name
