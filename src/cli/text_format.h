// text_format.h: times, counts, sizes and names in readable form.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace marey::cli {

std::string format_duration(double ns);  ///< "873 ns", "12.3 us", "4.56 ms", "1,234 s": three digits
std::string format_duration(std::integral auto ns) {
    return format_duration(static_cast<double>(ns));
}
/// The same in the unit "s", "ms" or "us", with three decimals; any other unit is chosen by the value.
std::string format_duration(double ns, std::string_view unit);
std::string format_count(std::uint64_t count);  ///< "1,234,567"
std::string format_bytes(double bytes);         ///< "873 B", "-12.3 KiB", "4.56 GiB"
std::string format_bytes(std::integral auto bytes) {
    return format_bytes(static_cast<double>(bytes));
}
/// The size of a file; "0 B" if there is none.
std::string format_file_size(const std::string& path);
std::string format_share(double share);  ///< 0.1234 -> "12.3%"
/// The same with more digits for small shares: "12%", "1.2%", "0.12%", "less than 0.01%".
std::string format_fine_share(double share);
/// "1 thread", "5,000 threads", "2 processes".
std::string format_plural(std::uint64_t count, std::string_view singular);

/// Parses "10us", "1.5ms", "2s", "300ns" or "0" into nanoseconds. Empty if the text is not a duration; only 0
/// needs no unit.
std::optional<std::uint64_t> parse_duration(std::string_view text);
/// `text` quoted for a shell.
std::string shell_word(std::string_view text);

/// `text` made safe to print anywhere: control characters, characters that reorder the text around them and
/// invisible ones become visible escapes, invalid UTF-8 becomes U+FFFD. ASCII characters in `kept` stay.
std::string printable(std::string_view text, std::string_view kept = {});
/// The number of columns that `text` (valid UTF-8) takes on a terminal: 2 for East Asian wide characters and
/// emoji, 0 for combining marks.
std::size_t display_width(std::string_view text);
/// `text` cut in the middle, with an ellipsis, to at most `width` columns. `text` is valid UTF-8.
std::string cut_middle(std::string_view text, std::size_t width);
/// A call "some/folder/file.py(3): function" cut to at most `width` columns: folders are removed first, from
/// the left, and the function last. Other texts are cut in the middle. `text` is valid UTF-8.
std::string cut_call(std::string_view text, std::size_t width);

/// Whether `text` contains `part`, ignoring ASCII case.
bool contains_ignoring_case(std::string_view text, std::string_view part);
/// The parts between separators, without empty ones.
std::vector<std::string> split(std::string_view text, char separator);
/// The last component of a path.
std::string_view base_name(std::string_view path);

}  // namespace marey::cli
