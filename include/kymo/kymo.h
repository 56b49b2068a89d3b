// kymo.h: the one header. Files that only mark ranges may include kymo/range.h instead.
#pragma once

#include <kymo/analyze.h>
#include <kymo/call_stack.h>
#include <kymo/context.h>
#include <kymo/device.h>
#include <kymo/emit.h>
#include <kymo/error.h>
#include <kymo/execution_trace.h>
#include <kymo/export.h>
#include <kymo/flops.h>
#include <kymo/import.h>
#include <kymo/memory.h>
#include <kymo/nvtx.h>
#include <kymo/observe.h>
#include <kymo/operation.h>
#include <kymo/range.h>
#include <kymo/record_profile.h>
#include <kymo/remote.h>
#include <kymo/scope.h>
#include <kymo/session.h>
#include <kymo/symbolize.h>
#include <kymo/trace.h>
#include <kymo/traceback.h>
#include <kymo/value.h>
