// trace_values.h: what a trace holds, as Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <string_view>

#include <marey/trace.h>

namespace marey::bindings {

/// Text whatever bytes it holds: what is no UTF-8 becomes U+FFFD. A new reference.
nanobind::object text_object(std::string_view text);

/// A value: bool, int, float, str, list; None for arrays and for what was left out.
nanobind::object value_object(const Trace& trace, const Argument& value);
/// The same of an input; None for lists of arrays too, of which there is nothing but metadata.
nanobind::object concrete_object(const Trace& trace, const Argument& value);

/// The keyword values of a range, without the call stack.
nanobind::dict keyword_values(const Trace& trace, std::span<const Argument> values);

/// Of an input: its sizes (or strides). What is no array has none; with `nested`, a list of arrays has one
/// list for each.
nanobind::list extents(const Trace& trace, const Argument& value, bool strides, bool nested);

/// The metadata of an array, or None: a tuple (storage, storage id, dtype, layout, device type, device index,
/// sizes, strides).
nanobind::object array_object(const Trace& trace, const Argument& value);

}  // namespace marey::bindings
