"""What a library's kernel name tells of its choice: tile, stages, cluster, split-K, tensor cores.

Only what the name says; None where it says nothing. Names as seen with CUDA 11 to 13.
"""

import re
from dataclasses import dataclass

_TENSOR = re.compile(
    r"nvjet|tensorop|xmma_gemm.*tensor|[hsid]\d{3,6}gemm|wgmma|hgmma|h884|s884|gmma|tensor16x8"
)
_SIMT = re.compile(r"simt|[a-z]*_?sgemm_|gemv|dot_kernel|gemmk1|gemmSN")
_NVJET = re.compile(
    r"nvjet_(?:[a-z0-9]+_)+?(?P<m>\d+)x(?P<n>\d+)_(?P<k>\d+)x(?P<stages>\d+)_(?P<cluster>\d+x\d+)"
)
_XMMA = re.compile(r"tilesize(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_stage(?P<stages>\d+)")
_LDG = re.compile(
    r"gemm_(?:[a-z0-9]+_)*?(?P<m>\d+)x(?P<n>\d+)_.*?stages_(?P<k>\d+)x(?P<stages>\d+)"
)
_CUTLASS = re.compile(r"gemm_(?:[a-z0-9]+_)*?(?P<m>\d+)x(?P<n>\d+)_(?P<k>\d+)x(?P<stages>\d+)_")
_BARE = re.compile(r"gemm_(?:[a-z0-9]+_)*?(?P<m>\d+)x(?P<n>\d+)_")
_SPLIT = re.compile(r"split[_-]?k", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """`tile` is MxNxK of a block (MxN where K is not told), `cluster` blocks of a cluster;
    `tensor_cores` is None where the name does not tell."""

    tile: str = ""
    stages: int | None = None
    cluster: str = ""
    split_k: bool = False
    tensor_cores: bool | None = None

    @property
    def text(self) -> str:
        """The choice in a few words."""
        parts = [self.tile]
        if self.cluster and self.cluster != "1x1":
            parts.append(f"cluster {self.cluster}")
        if self.split_k:
            parts.append("split-K")
        if self.tensor_cores is False:
            parts.append("no tensor cores")
        return " ".join(part for part in parts if part)


def choice(name: str) -> Choice:
    """What a kernel's name tells."""
    tensor = True if _TENSOR.search(name) else False if _SIMT.search(name) else None
    split = _SPLIT.search(name) is not None
    for pattern in (_NVJET, _XMMA, _LDG, _CUTLASS, _BARE):
        if match := pattern.search(name):
            told = match.groupdict()
            sizes = [told[key] for key in ("m", "n", "k") if told.get(key)]
            return Choice(
                tile="x".join(sizes),
                stages=int(told["stages"]) if told.get("stages") else None,
                cluster=told.get("cluster") or "",
                split_k=split,
                tensor_cores=tensor,
            )
    return Choice(split_k=split, tensor_cores=tensor)
