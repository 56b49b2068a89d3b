"""``marey.torch.profiler.profile``: the same profiler with the methods of ``torch.autograd.profiler.profile``."""

from __future__ import annotations

from marey.torch import _profile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike
    from typing import Any


class profile(_profile.profile):
    __doc__ = _profile.profile.__doc__

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[Any]) -> None:  # type: ignore[override]
        """Start or stop recording some activities."""
        super().toggle_collection_dynamic(enabled, activities)

    def export_chrome_trace(  # type: ignore[override]
        self,
        path: str | PathLike[str],
        metadata: Mapping[str, str] | None = None,
        use_python_export: bool = False,
        cuda_graph_annotations: Mapping[int, Any] | None = None,
        graph_lanes: str = "none",
        default_stream: int = 7,
    ) -> None:
        """Write a Chrome JSON trace, with more members for its top level: names, and values as JSON texts."""
        self._export_chrome_trace(path, metadata or {}, cuda_graph_annotations, graph_lanes, default_stream)
