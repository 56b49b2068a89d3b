// builder.h: builds a trace from the events of a Chrome trace.
#pragma once

#include <map>
#include <unordered_map>

#include <marey/trace.h>

#include "formats/chrome/event.h"
#include "formats/chrome/flows.h"
#include "formats/chrome/read_arguments.h"
#include "formats/chrome/read_rows.h"
#include "formats/chrome/sites.h"
#include "formats/chrome/violations.h"
#include "trace/trace_assembler.h"

namespace marey {

/// Facts about the file from outside the event list.
struct ChromeMetadata {
    bool is_marey_trace = false;  ///< written by our exporter
    std::int64_t base_ns = 0;
    std::int32_t rank = -1;
    std::string host;
};

class ChromeBuilder {
  public:
    /// Rules that the file breaks are added to `violations`, if there is one.
    explicit ChromeBuilder(ViolationList* violations) : violations_(assembler_, violations) {}
    TraceAssembler& assembler() { return assembler_; }
    ImportedArguments& arguments() { return arguments_; }
    ChromeMetadata& facts() { return facts_; }

    /// Adds an event, whose values are in arguments().
    void add(const ChromeEvent& event);
    void add_malformed(const char* cause, const ChromeEvent& event = {}) {
        ++malformed_[cause];
        violations_.add("event_fields", event.name, event.time_ns, cause);
    }
    /// See TraceAssembler::expect().
    void expect(double fraction) {
        assembler_.expect(fraction);
        flows_.expect(fraction);
    }
    Trace finish();

  private:
    using RangeId = TraceAssembler::RangeId;
    using LinkEnd = TraceAssembler::LinkEnd;

    /// Properties of a range other than its times.
    struct RangeProperties {
        std::uint32_t site = 0;
        std::uint16_t flags = 0;
        bool has_correlation = false;
        bool is_device = false;
        bool is_unfinished = false;
        std::uint64_t correlation = 0;
        RangeDetail detail;
    };
    /// A range that has no end yet.
    struct Open {
        std::int64_t time_ns;
        std::uint32_t row;
        StringId name;
        RangeProperties facts;
        std::vector<Argument> values;
    };
    /// An end event that comes before its begin event in the file.
    struct EarlyEnd {
        std::int64_t time_ns;
        StringId name;
        std::vector<Argument> values;
    };

    void add_timed(const ChromeEvent& event);
    void add_complete(const ChromeEvent& event);
    Open opened(const ChromeEvent& event);
    void begin(const ChromeEvent& event);
    void end(const ChromeEvent& event);
    void add_unmatched_end(const ChromeEvent& event);
    void add_unmatched_begins(std::span<const Open> begins);
    void begin_async(const ChromeEvent& event);
    void end_async(const ChromeEvent& event);
    void add_instant(const ChromeEvent& event);
    bool add_memory(const ChromeEvent& event, Row thread);
    void add_counter(const ChromeEvent& event);
    void add_flow(const ChromeEvent& event);
    void add_metadata(const ChromeEvent& event);
    void name_row(const ChromeEvent& event);
    bool is_window_mark(const ChromeEvent& event);

    RangeProperties describe(const ChromeEvent& event, std::uint32_t row);
    void read_numbers(RangeProperties& facts);
    void read_marey_arguments(RangeProperties& facts, ChromeSiteKey& key);
    void read_marey_site(ChromeSiteKey& key);
    void read_device(std::uint32_t row, const CategoryMeaning& meaning);
    std::uint32_t point_site(const ChromeEvent& event);
    RangeId add_range(std::uint32_t lane, std::int64_t start_ns, std::int64_t end_ns,
                      const RangeProperties& facts, std::span<const Argument> values);
    void add_bound_flows(const ChromeEvent& event, RangeId range);
    void close(std::uint32_t lane, Open& open, std::int64_t end_ns, std::uint16_t flags = 0,
               std::span<const Argument> more = {});
    void match_early_ends();
    void close_all();
    void add_problems();
    std::uint64_t async_key(const ChromeEvent& event) const;
    void see(std::int64_t time_ns) {
        first_ns_ = std::min(first_ns_, time_ns);
        last_ns_ = std::max(last_ns_, time_ns);
    }

    TraceAssembler assembler_;
    ChromeViolations violations_;
    ImportedArguments arguments_{assembler_};
    ImportedRows rows_{assembler_};
    ImportedSites sites_{assembler_};
    ImportedFlows flows_{assembler_, violations_};
    ChromeMetadata facts_;
    struct Unfinished {
        RangeId range;
        std::int64_t end_ns;
    };
    std::vector<Unfinished> unfinished_;   ///< marked as unfinished in the file
    std::vector<std::vector<Open>> open_;  ///< by row, outermost first
    std::unordered_map<std::uint64_t, std::vector<Open>> open_async_;
    std::unordered_map<std::uint64_t, std::vector<EarlyEnd>> early_ends_;
    std::vector<Argument> scratch_;
    std::string text_;
    std::int64_t first_ns_ = std::numeric_limits<std::int64_t>::max();
    std::int64_t last_ns_ = std::numeric_limits<std::int64_t>::min();
    std::map<std::string, std::uint64_t> malformed_;
    std::map<char, std::uint64_t> unread_;
    std::uint64_t unmatched_ends_ = 0;
    std::uint64_t unmatched_begins_ = 0;
    std::uint64_t mismatched_ends_ = 0;
    std::uint64_t no_duration_ = 0;
    std::uint64_t unread_series_ = 0;
    std::uint64_t unread_metadata_ = 0;
    bool has_samples_ = false;
};

}  // namespace marey
