// all.h: includes the whole C++ API. It needs C++20 and much more compile time than marey.h.
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
#include <marey/marey.h>
#include <marey/merge.h>
#include <marey/nvtx.h>
#include <marey/observe.h>
#include <marey/range_filter.h>
#include <marey/record_profile.h>
#include <marey/remote.h>
#include <marey/selection.h>
#include <marey/session.h>
#include <marey/symbolize.h>
#include <marey/timeline.h>
#include <marey/token.h>
#include <marey/trace.h>
#include <marey/traceback.h>
#include <marey/view.h>
