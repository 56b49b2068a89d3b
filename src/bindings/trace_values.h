// trace_values.h: converts values of a trace to Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include <filesystem>

#include <marey/trace.h>

namespace marey::bindings {

/// Converts any bytes to a str: invalid UTF-8 becomes U+FFFD. A new reference.
nanobind::object text_object(std::string_view text);

/// The member of a Python enumeration of device types.
nanobind::object device_type_object(nanobind::handle enumeration, DeviceType type);
/// A row number; None for kNoRow.
nanobind::object row_object(Row row);

/// Paths as the library takes them: file names need not be UTF-8.
std::vector<std::string> texts_of(const std::vector<std::filesystem::path>& files);

/// Converts a value to bool, int, float, str or list; None for arrays and for omitted values.
nanobind::object value_object(const Trace& trace, const Argument& value);
/// The same for an input; None also for lists of arrays, which have only metadata.
nanobind::object concrete_object(const Trace& trace, const Argument& value);

/// The keyword values of a range, without the call stack.
nanobind::dict keyword_values(const Trace& trace, std::span<const Argument> values);

/// The sizes (or strides) of an input; empty if it is not an array. With `nested`, a list of arrays has one
/// list for each.
nanobind::list extents(const Trace& trace, const Argument& value, bool strides, bool nested);

/// The metadata of an array, or None: a tuple (storage, storage id, dtype, layout, device type, device index,
/// sizes, strides).
nanobind::object array_object(const Trace& trace, const Argument& value);

}  // namespace marey::bindings
