// journal.h: writes one record of the journal stream. Part of the recorder; a separate file only for its
// template.
#pragma once

#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "record/recorder.h"

namespace marey {

template <class Record>
void Recorder::journal(detail::JournalKind kind, Record record, std::span<const std::byte> tail) noexcept {
    static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) % 8 == 0);
    const std::size_t bytes = (sizeof record + tail.size() + 7) / 8 * 8;
    record.head.kind = static_cast<std::uint16_t>(kind);
    record.head.bytes = static_cast<std::uint32_t>(bytes);
    std::vector<std::byte> whole(bytes);
    std::memcpy(whole.data(), &record, sizeof record);
    if (!tail.empty()) std::memcpy(whole.data() + sizeof record, tail.data(), tail.size());
    write_journal(whole);
}

}  // namespace marey
