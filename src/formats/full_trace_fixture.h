// full_trace_fixture.h: a trace with one of everything, for tests of formats.
#pragma once

#include <marey/trace.h>

namespace marey {

/// Two processes, threads, overlapping and async ranges, a device with two streams, inputs and values of
/// every kind, details, links of every kind, instants, counters, allocation reports, metadata, names with any
/// bytes. Deterministic.
Trace full_trace();

}  // namespace marey
