// recorder_parts.h: what most of the process needs of its recorder (recorder.h).
#pragma once

#include <string_view>

namespace marey {

class JournalWriter;
class NameTable;
class ThreadRegistry;

JournalWriter& recorder_journal() noexcept;
const NameTable& recorder_names() noexcept;
ThreadRegistry& recorder_threads() noexcept;

/// Prints "marey: ..." on standard error: the only way in which recording ever reports to the user.
void warn(std::string_view text) noexcept;

}  // namespace marey
