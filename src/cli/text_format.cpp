// text_format.cpp: times, counts, sizes and names in readable form.
#include "cli/text_format.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>

namespace marey::cli {
namespace {

struct Unit {
    double size;
    const char* name;
};

std::string group_digits(std::string digits) {
    for (std::size_t place = digits.size(); place > 3;) {
        place -= 3;
        digits.insert(place, 1, ',');
    }
    return digits;
}

/// Three digits, in the largest unit that leaves at least one digit before the decimal point.
template <std::size_t count>
std::string scaled(double value, const Unit (&units)[count], double step) {
    std::size_t i = 0;
    while (i + 1 < count && value >= units[i + 1].size) ++i;
    double number = value / units[i].size;
    // A number that would round up to the next unit is shown in that unit.
    if (i + 1 < count && number >= step - 0.5) {
        ++i;
        number = value / units[i].size;
    }
    std::string digits;
    if (number >= 999.5) {
        digits = group_digits(fmt::format("{:.0f}", number));
    } else if (units[i].size == 1 && number == std::floor(number)) {
        digits = fmt::format("{:.0f}", number);
    } else {
        digits = fmt::format("{:.{}f}", number, number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2);
    }
    return digits + " " + units[i].name;
}

constexpr char32_t kReplacement = 0xFFFD;

/// Removes one character from the front and returns it. Invalid UTF-8 returns kReplacement and removes one
/// byte.
char32_t next_character(std::string_view& text) {
    const auto lead = static_cast<unsigned char>(text.front());
    std::size_t length = lead < 0x80                    ? 1
                         : lead >= 0xC2 && lead <= 0xDF ? 2
                         : lead >= 0xE0 && lead <= 0xEF ? 3
                         : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                        : 0;
    char32_t character = length == 1   ? lead
                         : length == 2 ? lead & 0x1Fu
                         : length == 3 ? lead & 0x0Fu
                                       : lead & 0x07u;
    for (std::size_t i = 1; i < length; ++i) {
        if (i >= text.size() || (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
            length = 0;
            break;
        }
        character = character << 6 | (static_cast<unsigned char>(text[i]) & 0x3Fu);
    }
    const bool overlong = (length == 3 && character < 0x800) || (length == 4 && character < 0x10000);
    const bool surrogate = character >= 0xD800 && character <= 0xDFFF;
    if (length == 0 || overlong || surrogate || character > 0x10FFFF) {
        text.remove_prefix(1);
        return kReplacement;
    }
    text.remove_prefix(length);
    return character;
}

struct Interval {
    char32_t first, last;
};
constexpr Interval kZeroWidth[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A},
                                   {0x064B, 0x065F}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF},
                                   {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
// Characters that reorder the text around them, break lines or are invisible: a name could look like another.
constexpr Interval kDeceptive[] = {{0x00AD, 0x00AD}, {0x061C, 0x061C}, {0x180E, 0x180E},
                                   {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},
                                   {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F}};
constexpr Interval kDoubleWidth[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},  {0x2E80, 0x303E}, {0x3041, 0x33FF},   {0x3400, 0x4DBF},
    {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},  {0xA960, 0xA97F}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},  {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF},
    {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

template <std::size_t count>
bool among(char32_t character, const Interval (&intervals)[count]) {
    const auto found =
        std::lower_bound(std::begin(intervals), std::end(intervals), character,
                         [](const Interval& interval, char32_t c) { return interval.last < c; });
    return found != std::end(intervals) && found->first <= character;
}

/// "\\x1b", or "\\u202e" as in JSON, where such characters occur only in strings.
std::string escaped(char32_t character) {
    const auto code = static_cast<unsigned>(character);
    if (code < 0x80) return fmt::format("\\x{:02x}", code);
    if (code < 0x10000) return fmt::format("\\u{:04x}", code);
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF));
}

std::size_t character_width(char32_t character) {
    if (character < 0x300) return 1;
    if (among(character, kZeroWidth)) return 0;
    return among(character, kDoubleWidth) ? 2 : 1;
}

}  // namespace

std::string format_duration(double ns) {
    static constexpr Unit kUnits[] = {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};
    return ns < 0 ? "-" + scaled(-ns, kUnits, 1000) : scaled(ns, kUnits, 1000);
}

std::string format_duration(double ns, std::string_view unit) {
    const double scale = unit == "s" ? 1e9 : unit == "ms" ? 1e6 : unit == "us" ? 1e3 : 0;
    return scale == 0 ? format_duration(ns) : fmt::format("{:.3f} {}", ns / scale, unit);
}

std::string format_count(std::uint64_t count) {
    return group_digits(fmt::format("{}", count));
}

std::string format_bytes(double bytes) {
    static constexpr Unit kUnits[] = {
        {1, "B"}, {1024.0, "KiB"}, {1024.0 * 1024, "MiB"}, {1024.0 * 1024 * 1024, "GiB"}};
    return bytes < 0 ? "-" + scaled(-bytes, kUnits, 1024) : scaled(bytes, kUnits, 1024);
}

std::string format_file_size(const std::string& path) {
    struct stat info {};
    return format_bytes(::stat(path.c_str(), &info) == 0 ? info.st_size : 0);
}

std::string format_share(double share) {
    if (share > 0 && share < 0.0005) return "<0.1%";  // not zero
    return fmt::format("{:.1f}%", share * 100);
}

std::string format_fine_share(double share) {
    const double percent = share * 100;
    if (percent > 0 && percent < 0.005) return "less than 0.01%";
    return fmt::format("{:.{}f}%", percent, percent >= 9.95 ? 0 : percent >= 0.995 ? 1 : 2);
}

std::string format_plural(std::uint64_t count, std::string_view singular) {
    const char* const ending = count == 1 ? "" : singular.ends_with('s') ? "es" : "s";
    return fmt::format("{} {}{}", format_count(count), singular, ending);
}

std::string printable(std::string_view text, std::string_view kept) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const std::string_view before = text;
        const char32_t character = next_character(text);
        if ((character >= 0x20 && character < 0x7F) ||
            (character < 0x80 && kept.find(static_cast<char>(character)) != kept.npos)) {
            result += static_cast<char>(character);
        } else if (character == kReplacement) {
            result += "\xEF\xBF\xBD";
        } else if (character == '\n') {
            result += "\\n";
        } else if (character == '\t') {
            result += "\\t";
        } else if (character == '\r') {
            result += "\\r";
        } else if (character < 0xA0 || among(character, kDeceptive)) {
            result += escaped(character);
        } else {
            result += before.substr(0, before.size() - text.size());
        }
    }
    return result;
}

std::size_t display_width(std::string_view text) {
    std::size_t width = 0;
    while (!text.empty()) width += character_width(next_character(text));
    return width;
}

std::string cut_middle(std::string_view text, std::size_t width) {
    if (display_width(text) <= width) return std::string(text);
    if (width == 0) return "";
    struct Piece {
        std::string_view bytes;
        std::size_t width;
    };
    std::vector<Piece> pieces;
    while (!text.empty()) {
        const std::string_view before = text;
        const std::size_t columns = character_width(next_character(text));
        pieces.push_back({before.substr(0, before.size() - text.size()), columns});
    }
    const std::size_t room = width - 1;  // the ellipsis takes one
    const std::size_t front_room = room - room / 2;
    std::string front, back;
    std::size_t used = 0, first = 0, last = pieces.size();
    while (first < last && used + pieces[first].width <= front_room) {
        used += pieces[first].width;
        front += pieces[first++].bytes;
    }
    while (last > first && used + pieces[last - 1].width <= room) {
        used += pieces[--last].width;
        back.insert(0, pieces[last].bytes);
    }
    return front + "\xE2\x80\xA6" + back;
}

std::optional<std::uint64_t> parse_duration(std::string_view text) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const bool is_nothing = unit.empty() && number == 0;
    const double scale = is_nothing || unit == "ns" ? 1
                         : unit == "us"             ? 1e3
                         : unit == "ms"             ? 1e6
                         : unit == "s"              ? 1e9
                                                    : 0;
    const double ns = number * scale;
    if (error != std::errc() || scale == 0 || !(ns >= 0 && ns < 1e18)) return std::nullopt;
    return static_cast<std::uint64_t>(std::llround(ns));
}

std::string shell_word(std::string_view text) {
    const bool plain = !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
        return std::isalnum(c) != 0 || std::strchr("._-/+:@%", c) != nullptr || c >= 0x80;
    });
    if (plain) return printable(text);
    std::string result = "'";
    for (const char c : text) {
        if (c == '\'') {
            result += "'\\''";
        } else {
            result += c;
        }
    }
    return printable(result + "'");
}

std::string cut_call(std::string_view text, std::size_t width) {
    if (display_width(text) <= width) return std::string(text);
    const std::string_view blanks = text.substr(0, std::min(text.find_first_not_of(' '), text.size()));
    const std::size_t end = text.find("): ");  // of the place
    for (std::size_t slash = text.find('/'); slash != std::string_view::npos && slash < end;
         slash = text.find('/', slash + 1)) {
        std::string shorter = std::string(blanks) + "\u2026" + std::string(text.substr(slash));
        if (end != std::string_view::npos && display_width(shorter) <= width) return shorter;
    }
    if (end == std::string_view::npos) return cut_middle(text, width);
    const std::string_view function = text.substr(end + 3);
    std::string alone = std::string(blanks) + "\u2026: " + std::string(function);
    if (display_width(alone) <= width) return alone;
    return cut_middle(std::string(blanks) + std::string(function), width);
}

bool contains_ignoring_case(std::string_view text, std::string_view part) {
    auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return std::search(text.begin(), text.end(), part.begin(), part.end(),
                       [&](char a, char b) { return lower(a) == lower(b); }) != text.end() ||
           part.empty();
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(separator, at), text.size());
        if (end > at) parts.emplace_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

std::string_view base_name(std::string_view path) {
    return path.substr(path.find_last_of('/') + 1);
}

}  // namespace marey::cli
