// api.cpp: finds the function that responds for each path.
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
    Response (*respond)(const Request& request);
    bool is_slow = false;  ///< takes a pass over the trace: views that the user comes back to
};
constexpr Route kRoutes[] = {
    {"/api/picture", tile_response},
    {"/api/overview", overview_response, true},
    {"/api/counter", counter_response},
    {"/api/instants", instants_response},
    {"/api/names", names_response},
    {"/api/range", range_response},
    {"/api/instant", instant_response},
    {"/api/at", at_response},
    {"/api/links", links_response},
    {"/api/source", source_response},
    {"/api/search", search_response},
    {"/api/next", next_response},
    {"/api/table", table_response, true},
    {"/api/flame", flame_response, true},
    {"/api/sandwich", sandwich_response, true},
    {"/api/steps", steps_response, true},
    {"/api/explain", explain_response, true},
    {"/api/gpu", gpu_response, true},
    {"/api/memory", memory_response, true},
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

Response file_response(std::string_view path) {
    const std::string_view name = path == "/" ? "index.html" : path.substr(1);
    for (const PageFile& file : page_files()) {
        if (file.name == name) return {200, type_of(name), std::string(file.bytes)};
    }
    throw RequestError(404, "no such page");
}

}  // namespace

std::int64_t Request::absolute(std::int64_t time_ns) const noexcept {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(time_ns, loaded.origin_ns(), &sum)) return sum;
    return time_ns < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

Selection Request::span() const {
    const std::int64_t begin = query.integer("begin", -kAnyTime, kAnyTime, 0);
    const std::int64_t end = query.integer("end", -kAnyTime, kAnyTime, loaded.window_ns());
    if (end < begin) throw RequestError(400, "parameter 'end': it is before 'begin'");
    return Selection{.begin_ns = absolute(begin), .end_ns = absolute(end)};
}

Selection Request::selection() const {
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

Row Request::row(std::string_view name, std::size_t rows) const {
    if (rows == 0) throw RequestError(404, "parameter '" + std::string(name) + "': the trace has none");
    return static_cast<Row>(query.integer(name, 0, static_cast<std::int64_t>(rows) - 1));
}

Api::Api(std::vector<ViewSource> sources, std::vector<std::string> source_dirs, std::string secret,
         RunComparison* comparison)
    : source_dirs_(std::move(source_dirs)), secret_(std::move(secret)), difference_(comparison) {
    for (ViewSource& source : sources) slots_.push_back(std::make_unique<TraceSlot>(std::move(source)));
}

Response Api::handle(const HttpRequest& http) const {
    check_sender(http, secret_);
    return handle_checked(http);
}

Response Api::handle_own(const std::string& target) const {
    for (const auto& slot : slots_) slot->wait();
    return handle_checked(parse_request("GET " + target + " HTTP/1.1\r\n\r\n"));
}

Response Api::handle_checked(const HttpRequest& http) const {
    return http.path.starts_with("/api/") ? handle_api(http) : file_response(http.path);
}

Response Api::handle_api(const HttpRequest& http) const {
    if (http.path == "/api/outline") return {200, "application/json", outline_json(slots_)};
    if (http.path == "/api/diff" || http.path == "/api/difference") return handle_difference(http);
    const Query& query = http.query;
    TraceSlot& slot = *slots_[static_cast<std::size_t>(
        query.integer("trace", 0, static_cast<std::int64_t>(slots_.size()) - 1, 0))];
    if (http.path == "/api/reload")
        return json_response([&](JsonWriter& json) {
            json.member("generation", slot.reload(query.integer("last", 0, kAnyTime, 0)));
        });
    for (const Route& route : kRoutes) {
        if (route.path != http.path) continue;
        const TraceSlot::Status status = slot.status();
        if (status.loaded == nullptr)
            throw RequestError(503, status.error.empty() ? "the trace is still loading" : status.error);
        const auto generation = static_cast<std::int64_t>(status.loaded->generation());
        if (query.integer("generation", 0, kAnyTime, generation) != generation)
            throw RequestError(409, "the trace was reloaded: ask for the outline again");
        try {
            const Request request{*status.loaded, query, source_dirs_};
            Response response;
            if (route.is_slow) {
                response.type = route.respond == overview_response ? kBinary : response.type;
                response.body =
                    status.loaded->remembered(http.target, [&] { return route.respond(request).body; });
            } else {
                response = route.respond(request);
            }
            response.generation = status.loaded->generation();
            return response;
        } catch (const Error& error) {
            throw RequestError(400, error.what());
        }
    }
    throw RequestError(404, "no such request");
}

Response Api::handle_difference(const HttpRequest& http) const {
    if (slots_.size() != 2) throw RequestError(404, "only two traces can be compared");
    std::shared_ptr<const LoadedTrace> loaded[2];
    ComparedPart parts[2];
    for (std::size_t side = 0; side < 2; ++side) {
        loaded[side] = slots_[side]->status().loaded;
        if (loaded[side] == nullptr) throw RequestError(503, "the trace is still loading");
        const Request request{*loaded[side], http.query, source_dirs_};
        parts[side] = {loaded[side].get(), slots_[side]->name(), request.span()};
        if (!http.query.find("begin")) continue;
        const std::int64_t shift = http.query.integer("shift" + std::to_string(side), 0, kAnyTime, 0);
        parts[side].span.begin_ns -= shift;
        parts[side].span.end_ns -= shift;
    }
    try {
        return difference_.respond(http, parts);
    } catch (const Error& error) {
        throw RequestError(400, error.what());
    }
}

}  // namespace marey::serve
