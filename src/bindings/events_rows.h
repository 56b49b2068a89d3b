// events_rows.h: the events of a trace as Python objects that are created on first use.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <optional>
#include <vector>

#include <marey/event_list.h>
#include <marey/modules.h>

namespace marey::bindings {

/// Adds the type EventRow, the base class of events in a trace. Returns false with a Python error set.
bool add_event_row(PyObject* module);
/// Creates an event of a type derived from EventRow. Returns null with a Python error set.
PyObject* make_event_row(PyTypeObject* type, PyObject* rows, std::size_t event);

/// The names of the fields that EventRow itself defines: keys below EventRows::kKeys.
const char* core_key_name(std::size_t key) noexcept;

/// The events of a trace, with the Python objects that they share. Used with the GIL. Objects of events refer
/// to this, which does not keep them alive.
class EventRows {
  public:
    EventRows(const Trace& trace, nanobind::object event_type, nanobind::object interval_type,
              nanobind::object device_type, nanobind::object use_device, bool with_flops);

    const EventList& events() const noexcept { return events_; }
    nanobind::handle use_device() const noexcept { return use_device_; }
    bool with_flops() const noexcept { return with_flops_; }

    /// Throws a Python IndexError.
    std::size_t checked(std::size_t event) const;

    /// The object of an event: the same one while references to it exist. `self` is the Python object of
    /// this.
    nanobind::object object(nanobind::handle self, std::size_t event);
    /// The objects of all events.
    nanobind::list objects(nanobind::handle self);
    /// Whether a list has the objects of all events, unchanged.
    bool has(const nanobind::list& list) const noexcept;
    /// Called when an object is destroyed.
    void forget(std::size_t event, PyObject* object) noexcept;

    bool is_changed = false;  ///< some object of an event differs from the trace

    /// The field core_key_name(key).
    nanobind::object core(std::size_t event, std::size_t key);
    nanobind::object time_range(std::size_t event) const;
    nanobind::tuple detail(std::size_t event) const;
    nanobind::tuple inputs(std::size_t event) const;
    nanobind::tuple ids(std::size_t event) const;
    nanobind::tuple module(std::size_t event);
    nanobind::list kernels(std::size_t event);

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
    std::optional<ModuleTable> modules_;  ///< created on first use
    std::vector<SiteNames> names_;        ///< by site, created on first use
    std::array<nanobind::object, 256> devices_;
    std::vector<PyObject*> alive_;  ///< by event; borrowed: destroyed objects call forget()
};

}  // namespace marey::bindings
