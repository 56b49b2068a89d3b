// read.cpp: reads collapsed (folded) stacks: lines of "outermost;...;innermost weight".
#include <charconv>
#include <cmath>

#include <marey/error.h>

#include "formats/formats.h"
#include "formats/sampled_profile.h"

namespace marey {
namespace {

/// Splits a line into its stack, which may be empty, and its weight. Decimals of weights are rounded.
bool split_collapsed(std::string_view line, std::string_view& stack, std::int64_t& weight) {
    const std::size_t space = line.find_last_of(' ');
    if (space == line.npos || space + 1 == line.size()) return false;
    stack = line.substr(0, space);
    const char* const begin = line.data() + space + 1;
    const char* const end = line.data() + line.size();
    double number = 0;
    if (const auto whole = std::from_chars(begin, end, weight); whole.ec == std::errc() && whole.ptr == end)
        return true;
    const auto real = std::from_chars(begin, end, number);
    if (real.ec != std::errc() || real.ptr != end || !(std::abs(number) < 1e18)) return false;
    weight = std::llround(number);
    return true;
}

/// Calls use(line) for each line that is not empty, until it returns false. Windows line ends are accepted.
void each_text_line(std::string_view text, auto use) {
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (!line.empty() && !use(line)) return;
    }
}

Trace read_collapsed_text(std::string_view text, const std::string& name) {
    SampledProfile profile(name, text.size());
    const std::uint32_t lane = profile.lane(0, "", 0, "samples");
    std::uint64_t unread = 0;
    std::vector<std::uint32_t> sites;
    each_text_line(text, [&](std::string_view line) {
        if (line.starts_with('#')) return true;
        std::string_view stack;
        std::int64_t weight = 0;
        if (!split_collapsed(line, stack, weight)) {
            ++unread;
            return true;
        }
        sites.clear();
        for (std::size_t at = 0; at <= stack.size();) {
            const std::size_t end = std::min(stack.find(';', at), stack.size());
            if (end > at) sites.push_back(profile.frame(stack.substr(at, end - at)));
            at = end + 1;
        }
        profile.add(lane, sites, weight);
        return true;
    });
    if (profile.samples() == 0) throw Error(name + ": no collapsed stacks: expected lines of \"a;b;c 12\"");
    profile.assembler().add_problem("unread_lines", "Lines without a stack and a weight were skipped.",
                                    unread);
    return profile.finish("unit of the weights");
}

bool is_collapsed(std::span<const std::byte> head) noexcept {
    constexpr int kLines = 20;  // are checked
    std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    const std::size_t end = text.find_last_of('\n');
    if (end != text.npos) text = text.substr(0, end);  // the last line may be cut
    bool has_stack = false, is_valid = true;
    int lines = 0;
    each_text_line(text, [&](std::string_view line) {
        std::string_view stack;
        std::int64_t weight = 0;
        is_valid = line.starts_with('#') || split_collapsed(line, stack, weight);
        for (const char c : line) is_valid = is_valid && (static_cast<unsigned char>(c) >= ' ' || c == '\t');
        has_stack = has_stack || stack.find(';') != stack.npos;
        return is_valid && ++lines < kLines;
    });
    return is_valid && has_stack;
}

}  // namespace

FileFormat collapsed_format() {
    return {.name = "collapsed",
            .description = "Collapsed stacks: another name of folded, for reading",
            .recognizes = is_collapsed,
            .read_bytes = read_collapsed_text};
}

}  // namespace marey
