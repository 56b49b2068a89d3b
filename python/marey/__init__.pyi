"""Marey: a tracing profiler for C++, Python and PyTorch programs."""

from marey import itt as itt
from marey import nvtx as nvtx
from marey import profiler as profiler
from marey._active import is_enabled as is_enabled
from marey._activities import DeviceActivity as DeviceActivity
from marey._activities import DeviceType as DeviceType
from marey._activities import ProfilerActivity as ProfilerActivity
from marey._activities import ProfilerConfig as ProfilerConfig
from marey._activities import ProfilerState as ProfilerState
from marey._activities import RecordScope as RecordScope
from marey._activities import _ExperimentalConfig as _ExperimentalConfig
from marey._activities import kineto_available as kineto_available
from marey._activities import supported_activities as supported_activities
from marey._averages import FunctionEventAvg as FunctionEventAvg
from marey._emitters import emit_itt as emit_itt
from marey._emitters import emit_nvtx as emit_nvtx
from marey._event_list import EventList as EventList
from marey._events import FunctionEvent as FunctionEvent
from marey._execution_trace import ExecutionTraceObserver as ExecutionTraceObserver
from marey._handlers import tensorboard_trace_handler as tensorboard_trace_handler
from marey._marey import CapturedTraceback as CapturedTraceback
from marey._marey import DeviceEvent as DeviceEvent
from marey._marey import Error as Error
from marey._marey import RegisteredDevice as RegisteredDevice
from marey._marey import Session as Session
from marey._marey import Trace as Trace
from marey._marey import begin as begin
from marey._marey import counter as counter
from marey._marey import device_error as device_error
from marey._marey import end as end
from marey._marey import find_device as find_device
from marey._marey import instant as instant
from marey._marey import is_recording as is_recording
from marey._marey import is_recording_memory as is_recording_memory
from marey._marey import join_traces as join_traces
from marey._marey import node_id as node_id
from marey._marey import record_function as record_function
from marey._marey import record_function_fast as record_function_fast
from marey._marey import registered_devices as registered_devices
from marey._marey import report_allocation as report_allocation
from marey._marey import report_out_of_memory as report_out_of_memory
from marey._marey import set_node_id as set_node_id
from marey._marey import thread_name as thread_name
from marey._marey import time_on_device as time_on_device
from marey._modules import register_module_type as register_module_type
from marey._modules import unregister_module_type as unregister_module_type
from marey._profile import profile as profile
from marey._schedule import ProfilerAction as ProfilerAction
from marey._schedule import schedule as schedule
from marey._steps import KinetoStepTracker as KinetoStepTracker
from marey._trace import TraceTable as TraceTable
from marey._trace import load as load

__all__ = [
    "CapturedTraceback",
    "DeviceActivity",
    "DeviceEvent",
    "DeviceType",
    "Error",
    "EventList",
    "ExecutionTraceObserver",
    "FunctionEvent",
    "FunctionEventAvg",
    "KinetoStepTracker",
    "ProfilerAction",
    "ProfilerActivity",
    "ProfilerConfig",
    "ProfilerState",
    "RecordScope",
    "RegisteredDevice",
    "Session",
    "Trace",
    "TraceTable",
    "begin",
    "counter",
    "device_error",
    "emit_itt",
    "emit_nvtx",
    "end",
    "find_device",
    "instant",
    "is_enabled",
    "is_recording",
    "itt",
    "join_traces",
    "kineto_available",
    "load",
    "is_recording_memory",
    "node_id",
    "nvtx",
    "profile",
    "profiler",
    "record_function",
    "record_function_fast",
    "register_module_type",
    "registered_devices",
    "report_allocation",
    "report_out_of_memory",
    "schedule",
    "set_node_id",
    "supported_activities",
    "tensorboard_trace_handler",
    "thread_name",
    "time_on_device",
    "unregister_module_type",
]
