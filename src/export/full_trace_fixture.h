// full_trace_fixture.h: a trace that has one of everything, for tests of formats.
#pragma once

#include <marey/trace.h>

namespace marey {

/// Two processes, threads, overlapping and async ranges, a device with two queues, inputs and values of every
/// kind, details, arrows of every kind, instants, counters, reports of memory, metadata, names of any bytes.
/// Always the same.
Trace full_trace();

}  // namespace marey
