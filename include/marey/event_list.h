// event_list.h: the ranges of a trace as a flat list of events, and as a tree that includes allocations.
// Both read the properties of an event from the trace on demand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// Bytes allocated minus bytes freed in an event; the self values exclude the events inside it.
struct EventBytes {
    std::int64_t cpu = 0, device = 0;
    std::int64_t self_cpu = 0, self_device = 0;
};

/// One end of an arrow between events.
struct EventFlow {
    std::uint32_t link = 0;  ///< row of Trace::links()
    LinkKind kind = LinkKind::Flow;
    bool is_start = false;
};

/// Every range, and every allocation report outside any range, in order of (start, longer first): the rows of
/// list_ranges(). A range whose parent has the same name and no other child is merged into the parent: its
/// self time, children and launches belong to the parent's event. Python and C function calls are never
/// merged. Cheap to copy; safe to read from several threads.
class MAREY_API EventList {
  public:
    explicit EventList(Trace trace);

    const Trace& trace() const noexcept;
    std::size_t size() const noexcept;

    Row range(std::size_t event) const noexcept;   ///< kNoRow: it is a report
    Row report(std::size_t event) const noexcept;  ///< kNoRow: it is a range
    /// The event of a range; for a merged range, the event that it is merged into.
    std::uint32_t event_of(Row range) const noexcept;

    /// The parent event; kNoRow: none. Only CPU events have parents and children.
    std::uint32_t parent(std::size_t event) const;
    std::span<const std::uint32_t> children(std::size_t event) const;

    /// Whether it only spans time. A step that crosses ranges of its thread does not: it is among them, as in
    /// PyTorch.
    bool is_async(std::size_t event) const;

    std::int64_t start_ns(std::size_t event) const noexcept;     ///< since the window's start; clipped to it
    std::int64_t duration_ns(std::size_t event) const noexcept;  ///< of the part in the window
    std::int64_t self_ns(std::size_t event) const noexcept;      ///< of CPU events; 0 for async events
    std::int64_t device_total_ns(std::size_t event) const;  ///< of the work it and events inside it launched
    /// The work that it launched itself: rows of ranges, in order of their starts.
    std::span<const Row> launches(std::size_t event) const;
    /// Its device time was measured with events around it; its only launch spans the event.
    bool is_timed(std::size_t event) const;
    EventBytes bytes(std::size_t event) const;
    std::optional<double> flops(std::size_t event) const;  ///< empty: unknown
    /// The call stack, innermost entry first.
    std::vector<std::string_view> stack(std::size_t event) const;
    /// Its category in Chrome's format: "cpu_op", "kernel", ...
    std::string_view category(std::size_t event) const;
    /// The type of an input in Chrome's format: "float", "Scalar", "TensorList", ...; empty: none.
    std::string_view input_type(const Argument& input) const;
    /// The arrow that starts at the event or, if there is none, ends at it.
    std::optional<EventFlow> flow(std::size_t event) const;
    /// For device work, the call that launched it; for such a call, the call itself; otherwise kNoRow.
    Row launch(std::size_t event) const;
    /// Whether it has an `External id` of its own: operators, and in traces with PyTorch operators also user
    /// ranges and steps.
    bool has_id(std::size_t event) const;
    /// The nearest operator (or Python function) around a range; kNoRow: none.
    Row operator_around(Row range) const noexcept;
    Row function_around(Row range) const noexcept;

  private:
    struct Data;
    std::shared_ptr<const Data> data_;
};

/// All ranges, without merging, and all allocation reports, each below the range that was open on its thread.
/// Device work is below the call that launched it. Node numbers are the rows of the ranges, followed by the
/// rows of the reports. Cheap to copy; safe to read from several threads.
class MAREY_API EventTree {
  public:
    explicit EventTree(Trace trace);

    const Trace& trace() const noexcept;
    std::size_t size() const noexcept;
    std::span<const std::uint32_t> roots() const noexcept;    ///< in order of (start, longer first)
    std::uint32_t parent(std::uint32_t node) const noexcept;  ///< kNoRow: none
    std::span<const std::uint32_t> children(std::uint32_t node) const noexcept;  ///< likewise ordered

  private:
    struct Data;
    std::shared_ptr<const Data> data_;
};

}  // namespace marey
