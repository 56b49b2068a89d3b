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

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        **options: Any,
    ) -> str:
        """Format the events as a table; see ``EventList.table`` for the options."""
        return self.events().table(
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
            **options,
        )

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
