// python_events.h: FunctionEvents and averages that Python made or changed, read from their attributes.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include <marey/assemble.h>
#include <marey/averages.h>

namespace marey::bindings {

/// Whether Python takes a value as true.
bool is_true(nanobind::handle value);

/// The row of a FunctionEvent or a FunctionEventAvg.
AverageRow given_row(nanobind::handle event);

/// FunctionEvents, for a trace.
std::vector<DescribedEvent> described_events(const nanobind::list& events);

}  // namespace marey::bindings
