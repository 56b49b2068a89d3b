// api.h: what the page can ask; docs/internals/view.md describes every path.
#pragma once

#include <memory>

#include <marey/selection.h>

#include "json/json_writer.h"
#include "serve/answer.h"
#include "serve/http_request.h"
#include "serve/loaded_trace.h"

namespace marey::serve {

/// A question about a loaded trace.
struct Question {
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
Answer answer_picture(const Question& question);
Answer answer_overview(const Question& question);
Answer answer_counter(const Question& question);
Answer answer_instants(const Question& question);
Answer answer_names(const Question& question);
Answer answer_range(const Question& question);
Answer answer_instant(const Question& question);
Answer answer_at(const Question& question);
Answer answer_links(const Question& question);
Answer answer_source(const Question& question);
Answer answer_search(const Question& question);
Answer answer_next(const Question& question);
Answer answer_table(const Question& question);
Answer answer_flame(const Question& question);
Answer answer_sandwich(const Question& question);
Answer answer_steps(const Question& question);
Answer answer_gpu(const Question& question);
Answer answer_memory(const Question& question);

/// The longest width of a picture, and the most levels of one.
inline constexpr std::int64_t kMaxPixels = 4096;
inline constexpr std::int64_t kMaxLevels = 256;

/// Answers the requests of the page and of nobody else.
class Api {
  public:
    Api(std::vector<ViewSource> sources, std::vector<std::string> source_dirs, std::string secret);

    /// Safe on any thread. Throws RequestError.
    Answer handle(const Request& request) const;
    /// The same for a path and query that this program made. Waits until the traces are loaded.
    Answer handle_own(const std::string& target) const;

  private:
    Answer handle_checked(const Request& request) const;
    Answer handle_api(const Request& request) const;

    std::vector<std::unique_ptr<TraceSlot>> slots_;
    std::vector<std::string> source_dirs_;
    std::string secret_;
};

}  // namespace marey::serve
