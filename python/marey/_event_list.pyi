"""``EventList``: a list of events or averages that can be printed, grouped and exported."""

import os
from collections.abc import Sequence
from typing import Any

from marey._averages import FunctionEventAvg

class EventList(list[Any]):
    def __init__(
        self, *args: Any, use_device: str | None = None, profile_memory: bool = False, with_flops: bool = False
    ) -> None: ...
    @property
    def self_cpu_time_total(self) -> float: ...
    def total_average(self) -> FunctionEventAvg: ...
    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        *,
        percentiles: bool = False,
    ) -> EventList: ...
    def table(
        self,
        sort_by: str | None = None,
        row_limit: int | None = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        ascending: bool = False,
    ) -> str: ...
    def to_csv(
        self,
        sort_by: str | None = None,
        row_limit: int = -1,
        *,
        columns: Sequence[str] | None = None,
        ascending: bool = False,
    ) -> str: ...
    def to_markdown(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        *,
        columns: Sequence[str] | None = None,
        ascending: bool = False,
    ) -> str: ...
    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None: ...
    def supported_export_stacks_metrics(self) -> list[str]: ...
    def export_stacks(self, path: str | os.PathLike[str], metric: str, *, append_name: bool = False) -> None: ...
