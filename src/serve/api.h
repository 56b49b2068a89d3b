// api.h: what the page can ask; docs/internals/view.md describes every path.
#pragma once

#include <memory>

#include <marey/selection.h>

#include "serve/difference.h"
#include "serve/loaded_trace.h"
#include "serve/response.h"

namespace marey::serve {

/// A request about a loaded trace.
struct Request {
    const LoadedTrace& loaded;
    const Query& query;
    const std::vector<std::string>& source_dirs;

    const Trace& trace() const noexcept { return loaded.trace(); }
    /// A time as the page knows it: relative to the window's start.
    std::int64_t relative(std::int64_t time_ns) const noexcept {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(time_ns) -
                                         static_cast<std::uint64_t>(loaded.origin_ns()));
    }
    /// The opposite, limited to what 64 bits hold.
    std::int64_t absolute(std::int64_t time_ns) const noexcept;
    /// When a range ends; wraps around for damaged traces.
    std::int64_t end_of(Row range) const noexcept {
        const RangeColumns ranges = trace().ranges();
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(ranges.start_ns[range]) +
                                         static_cast<std::uint64_t>(ranges.duration_ns[range]));
    }
    /// The parameters begin and end as times of the trace; the window if they are not given.
    Selection span() const;
    /// The same, with the parameter tracks.
    Selection selection() const;
    Trace selected() const { return loaded.selected(selection()); }
    /// A parameter that is the row of a table with `rows` rows.
    Row row(std::string_view name, std::size_t rows) const;
};

// Each answers one path.
std::string outline_json(const std::vector<std::unique_ptr<TraceSlot>>& slots);
Response tile_response(const Request& request);
Response overview_response(const Request& request);
Response counter_response(const Request& request);
Response instants_response(const Request& request);
Response names_response(const Request& request);
Response range_response(const Request& request);
Response instant_response(const Request& request);
Response at_response(const Request& request);
Response links_response(const Request& request);
Response source_response(const Request& request);
Response search_response(const Request& request);
Response next_response(const Request& request);
Response table_response(const Request& request);
Response flame_response(const Request& request);
Response sandwich_response(const Request& request);
Response steps_response(const Request& request);
Response explain_response(const Request& request);
Response gpu_response(const Request& request);
Response memory_response(const Request& request);

/// Writes the members that every response about a range has.
void write_range(JsonWriter& json, const Request& request, Row row);

/// The longest width of a tile, and the most levels of one.
inline constexpr std::int64_t kMaxPixels = 4096;
inline constexpr std::int64_t kMaxLevels = 256;

/// Answers the requests of the page and of nobody else.
class Api {
  public:
    /// `comparison`: as in ViewOptions.
    Api(std::vector<ViewSource> sources, std::vector<std::string> source_dirs, std::string secret,
        RunComparison* comparison = nullptr);

    /// Safe on any thread. Throws RequestError.
    Response handle(const HttpRequest& http) const;
    /// The same for a path and query that this program made. Waits until the traces are loaded.
    Response handle_own(const std::string& target) const;

  private:
    Response handle_checked(const HttpRequest& http) const;
    Response handle_api(const HttpRequest& http) const;
    Response handle_difference(const HttpRequest& http) const;

    std::vector<std::unique_ptr<TraceSlot>> slots_;
    std::vector<std::string> source_dirs_;
    std::string secret_;
    mutable Difference difference_;
};

}  // namespace marey::serve
