// finding_facts.h: what the rules of explain() need of every range, collected in one pass.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <tuple>

#include <marey/known_waits.h>

#include "analyze/gpu/gpu_work.h"
#include "analyze/name_slots.h"

namespace marey {

/// Purposes of ranges that rules look at; the first ones are those of WaitKind.
enum class RangePurpose : std::uint8_t {
    None,
    Lock,
    Queue,
    Work,
    Network,
    Process,
    Sleep,
    Events,
    File,  ///< a call into C that reads or writes a file
    Collection,
    Import,
    Recorder,  ///< Marey's own: it imports its parts when they are used
};

/// All ranges of one name on the threads. Estimated recording costs are subtracted from the times; a range
/// inside another one of the name adds nothing to the totals.
struct NameFacts {
    std::uint64_t calls = 0;
    std::uint64_t made = 0;  ///< calls of others in it
    std::int64_t total_ns = 0;
    /// On the thread where it is largest.
    std::int64_t self_ns = 0, thread_total_ns = 0;
    Row self_thread = kNoRow, total_thread = kNoRow;
    std::uint32_t site = 0;  ///< of the first one
    Row longest = kNoRow;
    std::int64_t longest_ns = -1;
};

/// Waits, collections or imports on a thread that one function made. Nested ones count as one. Callbacks in
/// functions that wait are work.
struct PurposeFacts {
    RangePurpose purpose{};
    Row thread = kNoRow;
    std::uint32_t name = 0;    ///< slot of the range
    std::uint32_t caller = 0;  ///< slot of the nearest range around it that is the program's; kNoIndex: none
    std::uint64_t count = 0;
    std::int64_t time_ns = 0;
    Row longest = kNoRow;
    std::int64_t longest_ns = -1;
};

/// All of one purpose on a thread.
struct PurposeSum {
    Row thread = kNoRow;
    std::uint64_t count = 0;
    std::int64_t time_ns = 0;
    Row longest = kNoRow;
    std::int64_t longest_ns = -1;
    std::vector<PurposeFacts> parts;  ///< longest first
};

struct FindingFacts {
    static constexpr std::size_t kBuckets = 1000;
    static constexpr std::size_t kMostThreads = 1024;  ///< beyond, `busy` is empty
    using Busy = std::array<float, kBuckets>;

    explicit FindingFacts(const Trace& trace);

    std::string name(std::uint32_t slot) const { return std::string(slots.names[slot]); }
    std::string name(const NameFacts& facts) const {
        return name(static_cast<std::uint32_t>(&facts - names.data()));
    }
    /// The ranges with a purpose on the chosen thread that has most time in them.
    PurposeSum most(RangePurpose purpose, const std::vector<bool>& threads) const;

    NameSlots slots;
    std::vector<NameFacts> names;  ///< by slot; without calls: no range on a thread
    std::vector<RangePurpose> purpose_of_site;
    std::vector<PurposeFacts> purposes;
    std::vector<std::int64_t> busy_ns;  ///< by thread: in a range, and not waiting
    std::vector<Busy> busy;             ///< the same in equal parts of the window
    std::uint64_t ranges = 0;           ///< on threads
    bool is_sampled = false;            ///< calls and times are estimates
    bool has_c_calls = false;
    std::vector<bool> is_main;  ///< by thread: the first one of its process
};

}  // namespace marey
