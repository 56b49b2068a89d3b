// events_rows.h: the events of a trace as Python sees them, each an object that is made when it is looked at.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <unordered_map>
#include <vector>

#include <marey/event_list.h>
#include <marey/modules.h>

namespace marey::bindings {

/// Adds the type EventRow, from which Python derives the events of a trace. False: an exception is set.
bool add_event_row(PyObject* module);
/// A new event of a type that is derived from EventRow. Null: an exception is set.
PyObject* make_event_row(PyTypeObject* type, PyObject* rows, std::size_t event);

/// The names of the fields that EventRow has of its own: keys below EventRows::kKeys.
const char* core_key_name(std::size_t key) noexcept;

/// The events of a trace, with the Python objects that many of them share. Used under the GIL.
class EventRows {
  public:
    EventRows(const Trace& trace, nanobind::object event_type, nanobind::object interval_type,
              nanobind::object device_type, nanobind::object use_device, bool with_flops);

    const EventList& events() const noexcept { return events_; }
    nanobind::handle use_device() const noexcept { return use_device_; }
    bool with_flops() const noexcept { return with_flops_; }

    /// Throws Python's IndexError.
    std::size_t checked(std::size_t event) const;

    /// The object of an event: the same one for as long as somebody holds it. `self` is this object in
    /// Python.
    nanobind::object object(nanobind::handle self, std::size_t event);
    /// Called by an object that goes.
    void forget(std::size_t event, PyObject* object) noexcept;
    /// Holds an object that differs from what the trace says.
    void keep(std::size_t event, nanobind::object object);
    bool is_changed() const noexcept { return !kept_.empty(); }

    /// The field core_key_name(key).
    nanobind::object core(std::size_t event, std::size_t key);
    nanobind::object time_range(std::size_t event) const;
    nanobind::tuple detail(std::size_t event) const;
    nanobind::tuple inputs(std::size_t event) const;
    nanobind::tuple ids(std::size_t event) const;
    nanobind::tuple module(std::size_t event);
    nanobind::list kernels(std::size_t event);

    int traverse(visitproc visit, void* argument);
    void clear();

    static constexpr std::size_t kKeys = 14;

  private:
    struct SiteNames {
        nanobind::object name, trace_name, overload;
    };
    const SiteNames& names_of(std::uint32_t site);
    nanobind::object device_object(DeviceType type);
    nanobind::object range_field(const Trace& trace, Row row, std::size_t key);
    nanobind::object report_field(const Trace& trace, Row report, std::size_t key);
    nanobind::object place_field(const Trace& trace, Row thread_row, std::size_t key) const;

    EventList events_;
    nanobind::object event_type_;
    nanobind::object interval_type_;
    nanobind::object device_type_;
    nanobind::object use_device_;
    bool with_flops_;
    std::optional<ModuleTable> modules_;  ///< made when needed
    std::vector<SiteNames> names_;        ///< per site, made when needed
    std::array<nanobind::object, 256> devices_;
    std::unordered_map<std::size_t, PyObject*> alive_;  ///< borrowed: an object that goes says so
    std::unordered_map<std::size_t, nanobind::object> kept_;
};

}  // namespace marey::bindings
