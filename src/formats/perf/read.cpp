// read.cpp: reads the text of `perf script`: samples with a time and a stack, innermost frame first.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include <marey/error.h>

#include "formats/formats.h"
#include "formats/sampled_profile.h"
#include "json/json_cursor.h"

namespace marey {
namespace {

/// "perf 4711/4712 [001] 1234.567890:  10101010 cycles:u: "
struct PerfHeader {
    std::string_view command;
    std::int64_t pid = 0, tid = 0;
    std::int64_t time_ns = 0;
    std::string_view event;
};

std::optional<std::int64_t> perf_number(std::string_view text) {
    std::int64_t value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size())
        return std::nullopt;
    return value;
}

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

/// Removes the last word of a text and returns it.
std::string_view take_last_word(std::string_view& text) {
    text = trimmed(text);
    const std::size_t space = text.find_last_of(" \t");
    const std::string_view word = space == text.npos ? text : text.substr(space + 1);
    text = space == text.npos ? std::string_view() : trimmed(text.substr(0, space));
    return word;
}

/// The time is the first word that is a number with a point and a colon at its end. Before it come the
/// command, which may contain spaces, the thread or "process/thread", and perhaps the processor; after it
/// perhaps the period, and the event.
std::optional<PerfHeader> parse_perf_header(std::string_view line) {
    line = trimmed(line);
    for (std::size_t colon = line.find(':'); colon != line.npos; colon = line.find(':', colon + 1)) {
        // Not by words: one without a blank may be as long as the file.
        const std::size_t other = line.substr(0, colon).find_last_not_of("0123456789.");
        if (other == line.npos || (line[other] != ' ' && line[other] != '\t')) continue;
        const std::string_view time = line.substr(other + 1, colon - other - 1);
        PerfHeader header;
        if (time.find('.') == time.npos || !scaled_decimal(time, 9, header.time_ns)) continue;
        std::string_view before = line.substr(0, other);
        std::string_view thread = take_last_word(before);
        if (thread.starts_with('[')) thread = take_last_word(before);
        const std::size_t slash = thread.find('/');
        const auto pid = perf_number(thread.substr(0, slash));
        const auto tid = slash == thread.npos ? pid : perf_number(thread.substr(slash + 1));
        if (!pid || !tid || before.empty()) continue;
        header.command = before;
        header.pid = *pid;
        header.tid = *tid;
        std::string_view rest = trimmed(line.substr(colon + 1));
        if (rest.ends_with(':')) rest.remove_suffix(1);
        header.event = take_last_word(rest);
        return header;
    }
    return std::nullopt;
}

/// "    7f12a0b1c2d3 main+0x1a (/usr/bin/app)". The address alone if the symbol is unknown.
std::optional<std::pair<std::string_view, std::string_view>> parse_perf_frame(std::string_view line) {
    line = trimmed(line);
    const std::size_t space = line.find(' ');
    const std::string_view address = line.substr(0, space);
    if (address.empty() || address.find_first_not_of("0123456789abcdef") != address.npos) return std::nullopt;
    std::string_view symbol = space == line.npos ? std::string_view() : trimmed(line.substr(space));
    std::string_view file;
    if (symbol.ends_with(')')) {
        const std::size_t open = symbol.rfind(" (");
        const std::size_t start = symbol.starts_with('(') && open == symbol.npos ? 0 : open;
        if (start != symbol.npos) {
            file = trimmed(symbol.substr(start));
            file = file.substr(1, file.size() - 2);
            symbol = trimmed(symbol.substr(0, start));
        }
    }
    const std::size_t plus = symbol.rfind("+0x");
    if (plus != symbol.npos && plus > 0 &&
        symbol.find_first_not_of("0123456789abcdef", plus + 3) == symbol.npos)
        symbol = symbol.substr(0, plus);
    if (symbol.empty() || symbol == "[unknown]")
        symbol = file.empty() || file == "[unknown]" ? address : symbol;
    return std::pair(symbol.empty() ? address : symbol, file);
}

class PerfScriptReader {
  public:
    PerfScriptReader(std::string_view text, const std::string& name)
        : name_(name), profile_(name, text.size()) {
        while (!text.empty()) {
            const std::size_t end = text.find('\n');
            read_line(text.substr(0, end));
            text.remove_prefix(end == text.npos ? text.size() : end + 1);
        }
        end_sample();
    }

    Trace read() {
        if (samples_.empty()) throw Error(name_ + ": no samples of perf script were found");
        for (auto& [lane, samples] : samples_) place(lane, samples);
        profile_.assembler().add_problem("unread_lines", "Lines that are not samples were skipped.", unread_);
        return profile_.finish("");
    }

  private:
    struct Sample {
        std::int64_t time_ns;
        std::vector<std::uint32_t> stack;
    };

    void read_line(std::string_view line) {
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty()) return end_sample();
        if (line.starts_with('#')) return;
        // The header may be indented; the lines of a frame come after a header.
        if (header_) {
            const auto frame = parse_perf_frame(line);
            if (frame && (line[0] == '\t' || line[0] == ' ')) {
                stack_.push_back(profile_.frame(frame->first, frame->second));
                return;
            }
            end_sample();
        }
        header_ = parse_perf_header(line);
        if (!header_) ++unread_;
    }
    void end_sample() {
        if (!header_) return;
        std::ranges::reverse(stack_);
        if (stack_.empty()) stack_.push_back(profile_.frame(header_->event));
        const std::uint32_t lane =
            profile_.lane(header_->pid, header_->command, header_->tid, header_->command);
        samples_[lane].push_back({header_->time_ns, std::move(stack_)});
        stack_ = {};
        header_.reset();
    }

    void place(std::uint32_t lane, std::vector<Sample>& samples) {
        std::ranges::stable_sort(samples, {}, &Sample::time_ns);
        std::vector<std::int64_t> times(samples.size());
        std::transform(samples.begin(), samples.end(), times.begin(),
                       [](const Sample& sample) { return sample.time_ns; });
        const std::vector<std::int64_t> durations = sample_durations(times);
        for (std::size_t i = 0; i < samples.size(); ++i)
            profile_.add(lane, samples[i].stack, samples[i].time_ns, durations[i]);
        samples = {};
    }

    std::string name_;
    SampledProfile profile_;
    std::optional<PerfHeader>
        header_;  ///< of the sample that is being read; its views are of the file's text
    std::vector<std::uint32_t> stack_;
    std::map<std::uint32_t, std::vector<Sample>> samples_;  ///< per lane
    std::uint64_t unread_ = 0;
};

Trace read_perf_script_text(std::string_view text, const std::string& name) {
    return PerfScriptReader(text, name).read();
}

/// The first line that is not a comment is the header of a sample, and the second is a frame or empty.
bool is_perf_script(std::span<const std::byte> head) noexcept {
    std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    const auto next_line = [&] {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
        return line;
    };
    std::string_view line = next_line();
    while (!text.empty() && (line.starts_with('#') || trimmed(line).empty())) line = next_line();
    if (!parse_perf_header(line)) return false;
    line = next_line();
    return trimmed(line).empty() || parse_perf_frame(line) || parse_perf_header(line);
}

}  // namespace

FileFormat perf_format() {
    return {.name = "perf",
            .description = "Samples printed by `perf script`",
            .recognizes = is_perf_script,
            .read_bytes = read_perf_script_text};
}

}  // namespace marey
