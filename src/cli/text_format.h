// text_format.h: times, counts, sizes and names as people read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace marey::cli {

std::string format_duration(double ns);         ///< "873 ns", "12.3 us", "4.56 ms", "1,234 s": three digits
std::string format_count(std::uint64_t count);  ///< "1,234,567"
std::string format_bytes(std::uint64_t bytes);  ///< "873 B", "12.3 KiB", "4.56 GiB"
std::string format_share(double share);         ///< 0.1234 -> "12.3%"
/// The same of what is mostly small: "12%", "1.2%", "0.12%", "less than 0.01%".
std::string format_fine_share(double share);
/// "1 thread", "5,000 threads".
std::string format_plural(std::uint64_t count, std::string_view singular);

/// "512MB", "64K", "1GiB", "1000": bytes, in powers of 1024. Nothing when it is no size, or too large.
std::optional<std::uint64_t> parse_bytes(std::string_view text);
/// "10us", "1.5ms", "2s", "300ns", "0": nanoseconds. Nothing when it is no time; only 0 needs no unit.
std::optional<std::uint64_t> parse_duration(std::string_view text);
/// `text` as it has to be typed in a shell.
std::string shell_word(std::string_view text);

/// `text` safe to print anywhere: control characters become visible escapes, what is not UTF-8 becomes
/// U+FFFD.
std::string printable(std::string_view text);
/// Columns that `text` (valid UTF-8) takes on a terminal: 2 for East Asian wide characters and emoji, 0 for
/// marks.
std::size_t display_width(std::string_view text);
/// `text` cut in the middle, with an ellipsis, to at most `width` columns. `text` is valid UTF-8.
std::string cut_middle(std::string_view text, std::size_t width);
/// A call "some/folder/file.py(3): function" cut to at most `width` columns: folders go first, from the left,
/// and its function last. Other texts are cut in the middle. `text` is valid UTF-8.
std::string cut_call(std::string_view text, std::size_t width);

/// Whether `text` holds `part`, upper and lower case (of ASCII) alike.
bool contains_ignoring_case(std::string_view text, std::string_view part);
/// The last component of a path.
std::string_view base_name(std::string_view path);

}  // namespace marey::cli
