"""Kymo: a profiler for C++ and Python programs."""

from kymo import itt as itt
from kymo import nvtx as nvtx
from kymo import profiler as profiler
from kymo._activities import DeviceType as DeviceType
from kymo._activities import ProfilerActivity as ProfilerActivity
from kymo._activities import ProfilerConfig as ProfilerConfig
from kymo._activities import ProfilerState as ProfilerState
from kymo._activities import RecordScope as RecordScope
from kymo._activities import _ExperimentalConfig as _ExperimentalConfig
from kymo._activities import kineto_available as kineto_available
from kymo._activities import supported_activities as supported_activities
from kymo._averages import FunctionEventAvg as FunctionEventAvg
from kymo._devices import DeviceActivity as DeviceActivity
from kymo._devices import DeviceActivitySource as DeviceActivitySource
from kymo._devices import DeviceRuntime as DeviceRuntime
from kymo._devices import register_device as register_device
from kymo._emitters import emit_itt as emit_itt
from kymo._emitters import emit_nvtx as emit_nvtx
from kymo._event_list import EventList as EventList
from kymo._events import FunctionEvent as FunctionEvent
from kymo._execution_trace import ExecutionTraceObserver as ExecutionTraceObserver
from kymo._handlers import tensorboard_trace_handler as tensorboard_trace_handler
from kymo._kymo import CapturedTraceback as CapturedTraceback
from kymo._kymo import DeviceEvent as DeviceEvent
from kymo._kymo import DeviceLog as DeviceLog
from kymo._kymo import Error as Error
from kymo._kymo import RegisteredDevice as RegisteredDevice
from kymo._kymo import Session as Session
from kymo._kymo import Trace as Trace
from kymo._kymo import begin as begin
from kymo._kymo import counter as counter
from kymo._kymo import device_ticks as device_ticks
from kymo._kymo import device_ticks_per_second as device_ticks_per_second
from kymo._kymo import device_trouble as device_trouble
from kymo._kymo import end as end
from kymo._kymo import find_device as find_device
from kymo._kymo import instant as instant
from kymo._kymo import is_recording as is_recording
from kymo._kymo import join_traces as join_traces
from kymo._kymo import memory_wanted as memory_wanted
from kymo._kymo import node_id as node_id
from kymo._kymo import record_function as record_function
from kymo._kymo import record_function_fast as record_function_fast
from kymo._kymo import registered_devices as registered_devices
from kymo._kymo import report_allocation as report_allocation
from kymo._kymo import report_out_of_memory as report_out_of_memory
from kymo._kymo import set_node_id as set_node_id
from kymo._kymo import thread_name as thread_name
from kymo._kymo import time_on_device as time_on_device
from kymo._live import is_enabled as is_enabled
from kymo._modules import register_module_type as register_module_type
from kymo._modules import unregister_module_type as unregister_module_type
from kymo._profile import profile as profile
from kymo._schedule import ProfilerAction as ProfilerAction
from kymo._schedule import schedule as schedule
from kymo._steps import KinetoStepTracker as KinetoStepTracker
from kymo._trace import TraceTable as TraceTable
from kymo._trace import load as load

__all__ = [
    "CapturedTraceback",
    "DeviceActivity",
    "DeviceActivitySource",
    "DeviceEvent",
    "DeviceLog",
    "DeviceRuntime",
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
    "device_ticks",
    "device_ticks_per_second",
    "device_trouble",
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
    "memory_wanted",
    "node_id",
    "nvtx",
    "profile",
    "profiler",
    "record_function",
    "record_function_fast",
    "register_device",
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
