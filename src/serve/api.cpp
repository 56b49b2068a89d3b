// api.cpp: finds the answer for each path.
#include "serve/api.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <marey/error.h>

#include "serve/page.h"

namespace marey::serve {
namespace {

constexpr std::int64_t kAnyTime = std::int64_t{1} << 62;

struct Route {
    std::string_view path;
    Answer (*answer)(const Question& question);
    bool is_slow = false;  ///< takes a pass over the trace: views that the user comes back to
};
constexpr Route kRoutes[] = {
    {"/api/picture", answer_picture},
    {"/api/overview", answer_overview, true},
    {"/api/counter", answer_counter},
    {"/api/instants", answer_instants},
    {"/api/names", answer_names},
    {"/api/range", answer_range},
    {"/api/instant", answer_instant},
    {"/api/at", answer_at},
    {"/api/links", answer_links},
    {"/api/source", answer_source},
    {"/api/search", answer_search},
    {"/api/next", answer_next},
    {"/api/table", answer_table, true},
    {"/api/flame", answer_flame, true},
    {"/api/sandwich", answer_sandwich, true},
    {"/api/steps", answer_steps, true},
    {"/api/gpu", answer_gpu, true},
    {"/api/memory", answer_memory, true},
};

const char* type_of(std::string_view file) noexcept {
    constexpr std::pair<std::string_view, const char*> kTypes[] = {
        {".html", "text/html; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".json", "application/json"},
        {".map", "application/json"},
    };
    for (const auto& [suffix, type] : kTypes) {
        if (file.ends_with(suffix)) return type;
    }
    return "text/plain; charset=utf-8";
}

Answer answer_file(std::string_view path) {
    const std::string_view name = path == "/" ? "index.html" : path.substr(1);
    for (const PageFile& file : page_files()) {
        if (file.name == name) return {200, type_of(name), std::string(file.bytes)};
    }
    throw RequestError(404, "no such page");
}

}  // namespace

std::int64_t Question::absolute(std::int64_t time_ns) const noexcept {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(time_ns, loaded.origin_ns(), &sum)) return sum;
    return time_ns < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

Selection Question::span() const {
    const std::int64_t begin = query.integer("begin", -kAnyTime, kAnyTime, 0);
    const std::int64_t end = query.integer("end", -kAnyTime, kAnyTime, loaded.window_ns());
    if (end < begin) throw RequestError(400, "parameter 'end': it is before 'begin'");
    Selection selection;
    selection.begin_ns = absolute(begin);
    selection.end_ns = absolute(end);
    return selection;
}

Selection Question::selection() const {
    Selection selection = span();
    selection.tracks = query.ids("tracks", trace().tracks().size(), trace().tracks().size());
    std::ranges::sort(selection.tracks);
    selection.tracks.erase(std::unique(selection.tracks.begin(), selection.tracks.end()),
                           selection.tracks.end());
    const bool is_given = !selection.tracks.empty();
    std::erase_if(selection.tracks, [&](Row track) { return track >= loaded.recorded().tracks().size(); });
    if (is_given && selection.tracks.empty())  // tasks only: they do not count
        selection.begin_ns = selection.end_ns = std::numeric_limits<std::int64_t>::min();
    return selection;
}

Row Question::row(std::string_view name, std::size_t rows) const {
    if (rows == 0) throw RequestError(404, "parameter '" + std::string(name) + "': the trace has none");
    return static_cast<Row>(query.integer(name, 0, static_cast<std::int64_t>(rows) - 1));
}

Api::Api(std::vector<ViewSource> sources, std::vector<std::string> source_dirs, std::string secret)
    : source_dirs_(std::move(source_dirs)), secret_(std::move(secret)) {
    for (ViewSource& source : sources) slots_.push_back(std::make_unique<TraceSlot>(std::move(source)));
}

Answer Api::handle(const Request& request) const {
    check_sender(request, secret_);
    return handle_checked(request);
}

Answer Api::handle_own(const std::string& target) const {
    for (const auto& slot : slots_) slot->wait();
    return handle_checked(parse_request("GET " + target + " HTTP/1.1\r\n\r\n"));
}

Answer Api::handle_checked(const Request& request) const {
    return request.path.starts_with("/api/") ? handle_api(request) : answer_file(request.path);
}

Answer Api::handle_api(const Request& request) const {
    if (request.path == "/api/outline") return {200, "application/json", outline_json(slots_)};
    const Query& query = request.query;
    TraceSlot& slot = *slots_[static_cast<std::size_t>(
        query.integer("trace", 0, static_cast<std::int64_t>(slots_.size()) - 1, 0))];
    if (request.path == "/api/reload") {
        Answer answer;
        JsonWriter(answer.body).begin_object().member("generation", slot.reload()).end_object();
        return answer;
    }
    for (const Route& route : kRoutes) {
        if (route.path != request.path) continue;
        const TraceSlot::Status status = slot.status();
        if (status.loaded == nullptr)
            throw RequestError(503, status.error.empty() ? "the trace is still loading" : status.error);
        const auto generation = static_cast<std::int64_t>(status.loaded->generation());
        if (query.integer("generation", 0, kAnyTime, generation) != generation)
            throw RequestError(409, "the trace was reloaded: ask for the outline again");
        try {
            const Question question{*status.loaded, query, source_dirs_};
            Answer answer;
            if (route.is_slow) {
                answer.type = route.answer == answer_overview ? kBinary : answer.type;
                answer.body =
                    status.loaded->remembered(request.target, [&] { return route.answer(question).body; });
            } else {
                answer = route.answer(question);
            }
            answer.generation = status.loaded->generation();
            return answer;
        } catch (const Error& error) {
            throw RequestError(400, error.what());
        }
    }
    throw RequestError(404, "no such question");
}

}  // namespace marey::serve
