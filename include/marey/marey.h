// marey.h: includes the whole API. Files that only mark ranges can include marey/range.h instead.
#pragma once

#include <marey/analyze.h>
#include <marey/call_stack.h>
#include <marey/context.h>
#include <marey/device.h>
#include <marey/emit.h>
#include <marey/error.h>
#include <marey/execution_trace.h>
#include <marey/export.h>
#include <marey/flops.h>
#include <marey/import.h>
#include <marey/memory.h>
#include <marey/nvtx.h>
#include <marey/observe.h>
#include <marey/operation.h>
#include <marey/range.h>
#include <marey/record_profile.h>
#include <marey/remote.h>
#include <marey/scope.h>
#include <marey/session.h>
#include <marey/symbolize.h>
#include <marey/trace.h>
#include <marey/traceback.h>
#include <marey/value.h>
