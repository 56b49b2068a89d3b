"""Marey: a tracing profiler for C++, Python and PyTorch programs."""

from marey import itt as itt
from marey import nvtx as nvtx
from marey import profiler as profiler
from marey import web as web
from marey._enumerations import DeviceActivity as DeviceActivity
from marey._enumerations import ProfilerActivity as ProfilerActivity
from marey._enumerations import RecordScope as RecordScope
from marey._marey import CapturedTraceback as CapturedTraceback
from marey._marey import DeviceEvent as DeviceEvent
from marey._marey import Error as Error
from marey._marey import RegisteredDevice as RegisteredDevice
from marey._marey import Session as Session
from marey._marey import Trace as Trace
from marey._marey import __version__ as __version__
from marey._marey import begin as begin
from marey._marey import counter as counter
from marey._marey import device_error as device_error
from marey._marey import end as end
from marey._marey import find_device as find_device
from marey._marey import instant as instant
from marey._marey import is_recording as is_recording
from marey._marey import is_recording_memory as is_recording_memory
from marey._marey import join_traces as join_traces
from marey._marey import merge_traces as merge_traces
from marey._marey import node_id as node_id
from marey._marey import receive_token as receive_token
from marey._marey import record_function as record_function
from marey._marey import record_function_fast as record_function_fast
from marey._marey import registered_devices as registered_devices
from marey._marey import report_allocation as report_allocation
from marey._marey import report_out_of_memory as report_out_of_memory
from marey._marey import send_token as send_token
from marey._marey import set_node_id as set_node_id
from marey._marey import thread_name as thread_name
from marey._marey import time_on_device as time_on_device
from marey.compat.handlers import tensorboard_trace_handler as tensorboard_trace_handler
from marey.recording.emitters import emit_itt as emit_itt
from marey.recording.emitters import emit_nvtx as emit_nvtx
from marey.recording.execution_trace import ExecutionTraceObserver as ExecutionTraceObserver
from marey.recording.logs import LogHandler as LogHandler
from marey.recording.modules import register_module_type as register_module_type
from marey.recording.modules import unregister_module_type as unregister_module_type
from marey.recording.profile import profile as profile
from marey.recording.schedule import schedule as schedule
from marey.recording.step_loop import steps as steps
from marey.results.averages import FunctionEventAvg as FunctionEventAvg
from marey.results.event_list import EventList as EventList
from marey.results.events import FunctionEvent as FunctionEvent
from marey.results.trace import TraceTable as TraceTable
from marey.results.trace import load as load
from marey.results.trace import ranks as ranks
from marey.sql.lake import Lake as Lake
from marey.sql.lake import lake as lake

__all__ = [
    "CapturedTraceback",
    "DeviceEvent",
    "Error",
    "RegisteredDevice",
    "Session",
    "Trace",
    "begin",
    "counter",
    "device_error",
    "end",
    "find_device",
    "instant",
    "is_recording",
    "is_recording_memory",
    "join_traces",
    "merge_traces",
    "node_id",
    "receive_token",
    "record_function",
    "record_function_fast",
    "registered_devices",
    "report_allocation",
    "report_out_of_memory",
    "send_token",
    "set_node_id",
    "thread_name",
    "time_on_device",
    "TraceTable",
    "load",
    "ranks",
    "FunctionEventAvg",
    "EventList",
    "FunctionEvent",
    "emit_itt",
    "emit_nvtx",
    "ExecutionTraceObserver",
    "LogHandler",
    "register_module_type",
    "unregister_module_type",
    "profile",
    "schedule",
    "steps",
    "Lake",
    "lake",
    "tensorboard_trace_handler",
    "DeviceActivity",
    "ProfilerActivity",
    "RecordScope",
    "itt",
    "nvtx",
    "profiler",
    "web",
]
