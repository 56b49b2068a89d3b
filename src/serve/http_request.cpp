// http_request.cpp: parses the head of a request strictly: what a browser sends, and nothing else.
#include "serve/http_request.h"

#include <algorithm>
#include <charconv>

namespace marey::serve {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";

int hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/// Decodes %XX and, in queries, '+'. Empty if an escape is broken.
std::optional<std::string> decoded(std::string_view text, bool is_query) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            result += is_query && text[i] == '+' ? ' ' : text[i];
            continue;
        }
        if (i + 2 >= text.size()) return {};
        const int high = hex_digit(text[i + 1]);
        const int low = hex_digit(text[i + 2]);
        if (high < 0 || low < 0) return {};
        result += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return result;
}

bool equals_ignoring_case(std::string_view left, std::string_view right) noexcept {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [&](char a, char b) { return lower(a) == lower(b); });
}

/// Calls visit(part) for each part between separators.
template <class Visit>
void for_each_part(std::string_view text, char separator, const Visit& visit) {
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(separator, at), text.size());
        visit(text.substr(at, end - at));
        at = end + 1;
    }
}

std::string_view trimmed(std::string_view text) noexcept {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

/// Whether a list such as "gzip;q=0.5, deflate" has this element with a weight other than 0.
bool lists(std::string_view list, std::string_view wanted) {
    bool found = false;
    for_each_part(list, ',', [&](std::string_view element) {
        const std::size_t end = std::min(element.find(';'), element.size());
        const std::string_view weight = trimmed(element.substr(end));
        const bool is_refused =
            weight.find("q=0") != weight.npos && weight.find_first_of("123456789") == weight.npos;
        if (equals_ignoring_case(trimmed(element.substr(0, end)), wanted) && !is_refused) found = true;
    });
    return found;
}

bool is_name_character(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
bool is_control(char c) noexcept {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

void parse_target(std::string_view target, HttpRequest& request) {
    if (target.empty() || target.front() != '/') throw RequestError(400, "expected a path");
    const std::size_t mark = std::min(target.find('?'), target.size());
    const auto path = decoded(target.substr(0, mark), false);
    const auto query = Query::parse(target.substr(std::min(mark + 1, target.size())));
    if (!path || !query) throw RequestError(400, "broken escape in the address");
    request.target = target;
    request.path = *path;
    request.query = *query;
}

void parse_request_line(std::string_view line, HttpRequest& request) {
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    if (first == line.npos || first == last) throw RequestError(400, "broken request line");
    const std::string_view method = line.substr(0, first);
    const std::string_view version = line.substr(last + 1);
    const std::string_view target = line.substr(first + 1, last - first - 1);
    if (version != "HTTP/1.1" && version != "HTTP/1.0") throw RequestError(505, "expected HTTP/1.1");
    request.keeps_alive = version == "HTTP/1.1";
    if (std::ranges::any_of(target, [](char c) { return is_control(c) || c == ' ' || c == '\t'; }))
        throw RequestError(400, "broken request line");
    if (method != "GET" && method != "HEAD") throw RequestError(405, "only GET is supported");
    request.is_head = method == "HEAD";
    parse_target(target, request);
}

/// Stores a header that may occur once.
void set_once(std::string& place, std::string_view value, const char* name) {
    if (!place.empty()) throw RequestError(400, std::string("repeated header ") + name);
    place = value;
}

void take_header(std::string_view name, std::string_view value, HttpRequest& request) {
    const auto is = [&](std::string_view known) { return equals_ignoring_case(name, known); };
    if (is("host")) {
        set_once(request.host, value, "Host");
    } else if (is("origin")) {
        set_once(request.origin, value, "Origin");
    } else if (is("sec-fetch-site")) {
        set_once(request.fetch_site, value, "Sec-Fetch-Site");
    } else if (is("sec-fetch-mode")) {
        request.is_navigation = value == "navigate";
    } else if (is("marey-token")) {
        set_once(request.token, value, "Marey-Token");
    } else if (is("accept-encoding")) {
        request.accepts_gzip = lists(value, "gzip");
    } else if (is("connection")) {
        if (lists(value, "close")) request.keeps_alive = false;
    } else if (is("transfer-encoding") || is("upgrade") || (is("content-length") && value != "0")) {
        throw RequestError(400, "requests have no body");
    }
}

bool is_loopback_name(std::string_view host) noexcept {
    const std::size_t bracket = host.rfind(']');
    const std::size_t colon = host.rfind(':');
    std::string_view name = host;
    if (colon != host.npos && (bracket == host.npos || colon > bracket)) {
        const std::string_view port = host.substr(colon + 1);
        if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != port.npos)
            return false;
        name = host.substr(0, colon);
    }
    return name == "127.0.0.1" || name == "[::1]" || equals_ignoring_case(name, "localhost");
}

std::optional<std::int64_t> parsed_integer(std::string_view text) noexcept {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return {};
    return number;
}

}  // namespace

std::optional<Query> Query::parse(std::string_view text) {
    Query query;
    bool is_valid = true;
    for_each_part(text, '&', [&](std::string_view part) {
        if (part.empty()) return;
        const std::size_t mark = std::min(part.find('='), part.size());
        auto name = decoded(part.substr(0, mark), true);
        auto value = decoded(part.substr(std::min(mark + 1, part.size())), true);
        is_valid = is_valid && name && value;
        if (is_valid) query.parameters_.emplace_back(std::move(*name), std::move(*value));
    });
    if (!is_valid) return {};
    return query;
}

std::optional<std::string_view> Query::find(std::string_view name) const noexcept {
    for (const auto& [key, value] : parameters_) {
        if (key == name) return value;
    }
    return {};
}

std::int64_t Query::integer(std::string_view name, std::int64_t least, std::int64_t most) const {
    const auto given = find(name);
    if (!given) throw RequestError(400, "missing parameter '" + std::string(name) + "'");
    const auto number = parsed_integer(*given);
    if (!number || *number < least || *number > most)
        throw RequestError(400, "parameter '" + std::string(name) + "': expected an integer from " +
                                    std::to_string(least) + " to " + std::to_string(most));
    return *number;
}

std::int64_t Query::integer(std::string_view name, std::int64_t least, std::int64_t most,
                            std::int64_t otherwise) const {
    return find(name) ? integer(name, least, most) : otherwise;
}

std::vector<std::uint32_t> Query::ids(std::string_view name, std::size_t end, std::size_t limit) const {
    const auto fail = [&](const std::string& text) -> RequestError {
        return {400, "parameter '" + std::string(name) + "': " + text};
    };
    std::vector<std::uint32_t> numbers;
    for_each_part(find(name).value_or(""), ',', [&](std::string_view part) {
        if (part.empty()) return;
        const std::size_t dash = part.find('-', 1);
        const auto first = parsed_integer(part.substr(0, dash));
        const auto last = dash == part.npos ? first : parsed_integer(part.substr(dash + 1));
        if (!first || !last || *first < 0 || *last < *first) throw fail("expected ids such as 1,2,9-40");
        if (static_cast<std::uint64_t>(*last) >= end) throw fail("no such id: " + std::to_string(*last));
        if (static_cast<std::uint64_t>(*last - *first) >= limit - numbers.size())
            throw fail("at most " + std::to_string(limit) + " ids");
        for (std::int64_t id = *first; id <= *last; ++id) numbers.push_back(static_cast<std::uint32_t>(id));
    });
    return numbers;
}

std::size_t request_bytes(std::string_view received) noexcept {
    const std::size_t end = received.find(kHeadEnd);
    return end == received.npos ? 0 : end + kHeadEnd.size();
}

HttpRequest parse_request(std::string_view head) {
    HttpRequest request;
    const std::size_t first_end = head.find(kLineEnd);
    if (first_end == head.npos) throw RequestError(400, "broken request line");
    parse_request_line(head.substr(0, first_end), request);
    for (std::size_t at = first_end + kLineEnd.size(); at < head.size();) {
        const std::size_t end = head.find(kLineEnd, at);
        if (end == head.npos) throw RequestError(400, "broken header");
        const std::string_view line = head.substr(at, end - at);
        at = end + kLineEnd.size();
        if (line.empty()) break;
        const std::size_t colon = line.find(':');
        const std::string_view name = line.substr(0, colon);
        if (colon == line.npos || name.empty() || !std::ranges::all_of(name, is_name_character) ||
            std::ranges::any_of(line, is_control))
            throw RequestError(400, "broken header");
        take_header(name, trimmed(line.substr(colon + 1)), request);
    }
    return request;
}

void check_sender(const HttpRequest& request, std::string_view secret) {
    if (!is_loopback_name(request.host))
        throw RequestError(403, "the header Host must be a loopback name: 127.0.0.1, [::1] or localhost");
    if (!request.origin.empty() && request.origin != "http://" + request.host)
        throw RequestError(403, "requests from other pages are refused");
    const bool is_api = request.path.starts_with("/api/");
    const bool is_ours =
        request.fetch_site.empty() || request.fetch_site == "same-origin" || request.fetch_site == "none";
    if (!is_ours && (is_api || !request.is_navigation))
        throw RequestError(403, "requests from other pages are refused");
    if (is_api && !equal_in_constant_time(request.token, secret))
        throw RequestError(403, "wrong token: open the address that marey view printed");
}

bool equal_in_constant_time(std::string_view left, std::string_view right) noexcept {
    if (left.size() != right.size()) return false;  // the length of the token is public
    unsigned char difference = 0;
    for (std::size_t i = 0; i < left.size(); ++i)
        difference = static_cast<unsigned char>(difference | (left[i] ^ right[i]));
    const volatile unsigned char result = difference;  // so that no compiler returns early
    return result == 0;
}

}  // namespace marey::serve
