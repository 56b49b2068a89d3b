// event_list.h: the ranges of a trace as a flat list of events, and as a tree that holds allocations too.
// What either tells of one event it reads from the trace when asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// Bytes taken less given back in an event, and in no event inside it.
struct EventBytes {
    std::int64_t cpu = 0, device = 0;
    std::int64_t self_cpu = 0, self_device = 0;
};

/// An end of an arrow.
struct EventFlow {
    std::uint32_t link = 0;  ///< row of Trace::links()
    LinkKind kind = LinkKind::Flow;
    bool is_start = false;
};

/// Every range, and every allocation report that happened in no range, in order of (start, longer first): the
/// rows of list_ranges(). A range whose parent has its name and no other child is no event of its own: its
/// self time, children and launches are the parent's; calls of Python and C functions always are events.
/// Cheap to copy; may be read from several threads.
class MAREY_API EventList {
  public:
    explicit EventList(Trace trace);

    const Trace& trace() const noexcept;
    std::size_t size() const noexcept;

    Row range(std::size_t event) const noexcept;   ///< kNoRow: it is a report
    Row report(std::size_t event) const noexcept;  ///< kNoRow: it is a range
    /// The event of a range; of one that is merged, that of the range it is merged into.
    std::uint32_t event_of(Row range) const noexcept;

    /// kNoRow: none. Only what threads did has parents and children.
    std::uint32_t parent(std::size_t event) const;
    std::span<const std::uint32_t> children(std::size_t event) const;

    std::int64_t start_ns(std::size_t event) const noexcept;     ///< since the window's start; in the window
    std::int64_t duration_ns(std::size_t event) const noexcept;  ///< of the part in the window
    std::int64_t self_ns(std::size_t event) const noexcept;  ///< of what threads did; async ones have none
    std::int64_t device_total_ns(std::size_t event) const;   ///< of what it and those inside it launched
    /// What it launched itself: rows of ranges, in order of their starts.
    std::span<const Row> launches(std::size_t event) const;
    /// Its time on a device was measured with events around it: the one that it has launched spans it.
    bool is_timed(std::size_t event) const;
    EventBytes bytes(std::size_t event) const;
    std::optional<double> flops(std::size_t event) const;  ///< nothing: unknown
    /// The call stack, the innermost entry first.
    std::vector<std::string_view> stack(std::size_t event) const;
    /// The word of Chrome's format for what it is: "cpu_op", "kernel", ...
    std::string_view category(std::size_t event) const;
    /// Likewise for the type of an input: "float", "Scalar", "TensorList", ...; empty: there is none.
    std::string_view input_type(const Argument& input) const;
    /// The arrow that starts or, where none does, ends at it.
    std::optional<EventFlow> flow(std::size_t event) const;
    /// The call that launched it, for what a device did; itself, for such a call; else kNoRow.
    Row launch(std::size_t event) const;
    /// The nearest operator (Python function) around a range; kNoRow: none.
    Row operator_around(Row range) const noexcept;
    Row function_around(Row range) const noexcept;

  private:
    struct Data;
    std::shared_ptr<const Data> data_;
};

/// All ranges, none merged, and all allocation reports, each under the range of its thread that was open
/// then. What a device did stands under the call that launched it. Nodes are numbered: ranges by their rows,
/// then reports by theirs. Cheap to copy; may be read from several threads.
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
