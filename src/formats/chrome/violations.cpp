// violations.cpp: the rules that need more than one event; and strict JSON, which the reader does not ask
// for.
#include "formats/chrome/violations.h"

#include <algorithm>

#include "json/json_scanner.h"

namespace marey {
namespace {

/// "'name' at 12.345 us"
std::string place_of(std::string_view name, std::int64_t time_ns) {
    const auto ns = static_cast<std::uint64_t>(time_ns < 0 ? -time_ns : time_ns);
    return "'" + std::string(name) + "' at " + (time_ns < 0 ? "-" : "") + std::to_string(ns / 1000) + "." +
           std::to_string(1000 + ns % 1000).substr(1) + " us";
}

/// Removes the keys from `first` on, which belong to one object. Returns one that is there twice, or "".
std::string_view take_repeated_key(std::vector<std::string_view>& keys, std::size_t first) {
    constexpr std::size_t kFew = 16;
    const auto begin = keys.begin() + static_cast<std::ptrdiff_t>(first);
    std::string_view repeated;
    if (keys.size() - first > kFew) {
        std::sort(begin, keys.end());
        const auto twice = std::adjacent_find(begin, keys.end());
        if (twice != keys.end()) repeated = *twice;
    } else {
        for (auto key = begin; key != keys.end() && repeated.empty(); ++key)
            if (std::find(begin, key, *key) != key) repeated = *key;
    }
    keys.resize(first);
    return repeated;
}

}  // namespace

void ChromeViolations::add(std::string_view rule, StringId name, std::int64_t time_ns,
                           std::string_view what) {
    if (list_ == nullptr) return;
    list_->add(rule, [&] { return place_of(assembler_.text(name), time_ns).append(" ").append(what); });
}

void ChromeViolations::add_range(std::uint32_t row, StringId name, std::int64_t start_ns,
                                 std::int64_t end_ns) {
    if (list_ == nullptr) return;
    if (row >= rows_.size()) rows_.resize(row + 1);
    rows_[row].push_back({start_ns, end_ns, name});
}

void ChromeViolations::finish(std::int64_t first_ns, std::int64_t last_ns) {
    if (list_ == nullptr) return;
    for (std::vector<Interval>& row : rows_) {
        std::ranges::stable_sort(row, [](const Interval& a, const Interval& b) {
            return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
        });
        std::vector<Interval> open;
        for (const Interval& each : row) {
            while (!open.empty() && open.back().end_ns <= each.start_ns) open.pop_back();
            if (!open.empty() && each.end_ns > open.back().end_ns) {
                add("row_nesting", each.name, each.start_ns,
                    "starts inside " + place_of(assembler_.text(open.back().name), open.back().start_ns) +
                        " and ends after it");
            } else {
                open.push_back(each);
            }
        }
    }
    if (first_ns < 0)
        list_->add("file_window", [&] { return "events start at " + std::to_string(first_ns) + " ns"; });
    if (last_ns > window_end_ns_)
        list_->add("file_window", [&] {
            return "events end " + std::to_string(last_ns - window_end_ns_) + " ns after the window";
        });
}

bool check_json(std::string_view text, ViolationList& violations) {
    JsonScanner scanner(text);
    std::vector<std::string_view> keys;  // of all open objects
    std::vector<std::size_t> starts;     // of each open list or object in keys
    JsonToken token = scanner.next();
    for (; token != JsonToken::End && token != JsonToken::Error; token = scanner.next()) {
        if (token == JsonToken::Key) {
            keys.push_back(scanner.raw());
        } else if (token == JsonToken::BeginObject || token == JsonToken::BeginArray) {
            starts.push_back(keys.size());
        } else if (token == JsonToken::EndObject || token == JsonToken::EndArray) {
            const std::string_view repeated = take_repeated_key(keys, starts.back());
            starts.pop_back();
            if (!repeated.empty())
                violations.add("unique_keys", [&] {
                    return "'" + std::string(repeated) + "' before byte " + std::to_string(scanner.offset());
                });
        }
    }
    if (token == JsonToken::End) return true;
    violations.add("strict_json", [&] { return scanner.error(); });
    return false;
}

}  // namespace marey
