// python_stacks.cpp: the threads of another process's interpreter, and their Python frames.
#include "outside/python_stacks.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace marey {
namespace {

constexpr int kTries = 5;
constexpr std::size_t kMostInterpreters = 256;
constexpr std::size_t kMostThreads = std::size_t{1} << 14;
constexpr std::size_t kMostCalls = std::size_t{1} << 14;
constexpr std::size_t kMostSeparateFrames = 1024;  // those outside the data stack: of generators, and entries
constexpr std::size_t kMostChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kMostChunks = 256;
constexpr std::size_t kUsualChunkBytes = std::size_t{16} << 10;
constexpr std::size_t kMostTextBytes = 4096;
constexpr std::size_t kMostTableBytes = std::size_t{1} << 20;
constexpr std::uint8_t kFirstEntryOwner = 3;  // since 3.12: frames that are not calls
constexpr std::uintptr_t kTagBits = 7;        // of references on the stack, since 3.14

// Offsets that are the same in all supported versions.
constexpr std::uintptr_t kType = 8, kSize = 16, kTypeName = 24, kBytesData = 32;
constexpr std::uintptr_t kTextLength = 16, kTextState = 32;

template <class T>
T at(const std::byte* bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes + offset, sizeof value);
    return value;
}

/// A chunk of a thread's data stack, in which its frames lie one after the other.
struct ChunkHead {
    std::uintptr_t previous;
    std::uint64_t size;  ///< with this head, in bytes
    std::uint64_t top;   ///< in words after this head; only of chunks before the current one
};

}  // namespace

std::vector<PythonThread> PythonReader::threads() const {
    std::vector<PythonThread> found;
    const auto word = [&](std::uintptr_t address) {
        return process_.read<std::uintptr_t>(address).value_or(0);
    };
    std::uintptr_t interpreter = word(runtime_ + layout_.interpreters);
    for (std::size_t i = 0; interpreter != 0 && i < kMostInterpreters; ++i) {
        const std::uintptr_t gil =
            layout_.is_311() ? runtime_ + layout_.gil : word(interpreter + layout_.gil);
        const bool is_locked = process_.read<std::int32_t>(gil + layout_.gil_locked).value_or(0) == 1;
        const std::uintptr_t holder = is_locked ? word(gil + layout_.gil_holder) : 0;
        std::vector<std::byte> bytes(layout_.thread_bytes);
        std::uintptr_t state = word(interpreter + layout_.threads);
        while (state != 0 && found.size() < kMostThreads &&
               process_.read(state, bytes.data(), bytes.size())) {
            found.push_back({.state = state,
                             .thread_id = at<std::uint64_t>(bytes.data(), layout_.thread_id),
                             .native_id = at<std::uint64_t>(bytes.data(), layout_.native_id),
                             .gil = gil,
                             .holds_gil = state == holder});
            state = at<std::uintptr_t>(bytes.data(), layout_.next_thread);
        }
        interpreter = word(interpreter + layout_.next_interpreter);
    }
    return found;
}

bool PythonReader::copy_chunks(std::uintptr_t state, CopiedMemory& memory) const {
    const auto chunk = memory.read<std::uintptr_t>(state + layout_.chunk);
    const auto top = memory.read<std::uintptr_t>(state + layout_.chunk + sizeof(std::uintptr_t));
    if (!chunk || !top) return false;
    if (*chunk == 0) return true;  // it has not run a function yet
    std::size_t bytes = *top - *chunk;
    std::uintptr_t at = *chunk;
    std::size_t all = 0;
    for (std::size_t i = 0; at != 0 && i < kMostChunks && all < kMostCalls * layout_.frame_bytes; ++i) {
        bytes = std::clamp(bytes, sizeof(ChunkHead), kMostChunkBytes);
        const std::size_t copied = memory.copy(at, bytes);
        if (copied < sizeof(ChunkHead)) return i != 0;  // frames are read one by one where there is no copy
        const ChunkHead head = *memory.read<ChunkHead>(at);
        const std::size_t used = std::min<std::uint64_t>(head.top, kMostChunkBytes / 8) * 8 + sizeof head;
        all += copied;
        if (i > 0 && used > copied) all += memory.copy(at, used);
        at = head.previous;
        bytes = kUsualChunkBytes;
    }
    return true;
}

PythonReader::Try PythonReader::read_calls(const PythonThread& thread, CopiedMemory& memory,
                                           PythonStack& stack) {
    stack = {};
    if (memory.copy(thread.state, layout_.thread_bytes) != layout_.thread_bytes) return Try::Torn;
    const std::uintptr_t current_at = thread.state + layout_.current;
    const std::uintptr_t entry =
        layout_.has_entries() ? memory.read<std::uintptr_t>(current_at).value_or(0) : 0;
    if (layout_.has_entries() && entry == 0) return Try::Torn;
    const std::uintptr_t place = layout_.has_entries() ? entry + layout_.entry_frame : current_at;
    const auto current = [&] { return process_.read<std::uintptr_t>(place); };
    const auto before = current();
    if (!before || !copy_chunks(thread.state, memory)) return Try::Torn;

    std::vector<std::byte> separate(layout_.frame_bytes);
    std::size_t separate_count = 0;
    std::size_t anchored = 0;  // calls whose anchor is known: since 3.12 it comes after them
    std::uintptr_t anchor = entry;
    std::uintptr_t frame = *before;
    for (std::size_t count = 0; frame != 0; ++count) {
        if (count == kMostCalls || separate_count == kMostSeparateFrames) {
            stack.is_cut = true;
            break;
        }
        const std::byte* bytes = memory.find(frame, layout_.frame_bytes);
        if (bytes == nullptr) {
            ++separate_count;
            if (frame % sizeof(void*) != 0 || !process_.read(frame, separate.data(), separate.size()))
                return Try::Torn;
            bytes = separate.data();
        }
        const auto owner = at<std::uint8_t>(bytes, layout_.owner);
        if (!layout_.is_311() && owner >= kFirstEntryOwner) {
            for (; anchored < stack.calls.size(); ++anchored) stack.calls[anchored].anchor = frame;
        } else {
            const std::uintptr_t code_at = at<std::uintptr_t>(bytes, layout_.code) & ~kTagBits;
            const PythonCode& runs = code(code_at);
            if (!runs.is_code) return Try::Torn;
            const std::uintptr_t instruction =
                at<std::uintptr_t>(bytes, layout_.instruction) - runs.instructions;
            const bool is_within = instruction < runs.instruction_bytes;
            stack.calls.push_back({frame, code_at, is_within ? static_cast<std::int32_t>(instruction) : -1,
                                   layout_.is_311() ? anchor : 0});
        }
        if (layout_.is_311() && at<std::uint8_t>(bytes, layout_.is_entry) != 0 && anchor != 0)
            anchor = memory.read<std::uintptr_t>(anchor + layout_.entry_previous).value_or(0);
        frame = at<std::uintptr_t>(bytes, layout_.previous);
    }
    // The chain begins with the frame that was current before; a thread may have gone on since,
    // but not have ended.
    return current() ? Try::Whole : Try::Torn;
}

PythonStack PythonReader::stack(const PythonThread& thread, CopiedMemory& memory) {
    PythonStack stack;
    const CopiedMemory given = memory;
    for (int i = 0; i < kTries; ++i) {
        if (i > 0) memory = given;
        if (read_calls(thread, memory, stack) == Try::Whole) return stack;
    }
    stack = {};
    stack.is_torn = true;
    return stack;
}

const PythonCode& PythonReader::code(std::uintptr_t address) {
    const auto [known, is_new] = codes_.try_emplace(address);
    PythonCode& code = known->second;
    if (!is_new) return code;
    std::vector<std::byte> bytes(layout_.code_bytes);
    if (address % sizeof(void*) != 0 || !process_.read(address, bytes.data(), bytes.size())) return code;
    const auto type = at<std::uintptr_t>(bytes.data(), kType);
    if (!code_types_.contains(type)) {
        if (type_name(address) != "code") return code;
        code_types_.insert(type);
    }
    const auto pointer = [&](std::uint32_t offset) { return at<std::uintptr_t>(bytes.data(), offset); };
    code.is_code = true;
    code.filename = text(pointer(layout_.filename));
    code.qualname = text(pointer(layout_.qualname));
    code.first_line = at<std::int32_t>(bytes.data(), layout_.first_line);
    code.instructions = address + layout_.instructions;
    code.instruction_bytes =
        std::min<std::uint64_t>(at<std::uint64_t>(bytes.data(), kSize), kMostTableBytes) *
        2;  // of code units
    code.local_count = static_cast<std::uint32_t>(at<std::int32_t>(bytes.data(), layout_.local_count));
    code.stack_size = static_cast<std::uint32_t>(at<std::int32_t>(bytes.data(), layout_.local_count - 8));
    code.line_table = this->bytes(pointer(layout_.line_table));
    code.exception_table = this->bytes(pointer(layout_.exception_table));
    return code;
}

std::int32_t PythonReader::line(const PythonCall& call) {
    const PythonCode& of = code(call.code);
    return line_at(of.line_table, of.first_line, std::max(call.instruction, 0));
}

std::vector<std::uintptr_t> PythonReader::values(const PythonCall& call, std::uint32_t count,
                                                 const CopiedMemory& memory) {
    const std::uint32_t first = code(call.code).local_count;
    constexpr std::uint32_t kMostValues = 256;
    std::vector<std::uintptr_t> values;
    if (first > kMostValues) return values;
    for (std::uint32_t i = 0; i < std::min(count, kMostValues); ++i) {
        const auto value =
            memory.read<std::uintptr_t>(call.frame + layout_.locals + (first + i) * sizeof(std::uintptr_t));
        values.push_back(value.value_or(0) & ~kTagBits);
    }
    return values;
}

std::vector<std::uintptr_t> PythonReader::kept_values(const PythonCall& call, const CopiedMemory& memory) {
    if (call.instruction < 0) return {};
    return values(call, handler_depth(code(call.code).exception_table, call.instruction), memory);
}

std::vector<std::uintptr_t> PythonReader::stack_values(const PythonCall& call, const CopiedMemory& memory) {
    const PythonCode& of = code(call.code);
    std::uint64_t count = of.stack_size;
    if (layout_.stack_pointer != 0) {
        const auto end = memory.read<std::uintptr_t>(call.frame + layout_.stack_pointer).value_or(0);
        const std::uintptr_t begin = call.frame + layout_.locals + of.local_count * sizeof(std::uintptr_t);
        count = end > begin ? std::min<std::uint64_t>(count, (end - begin) / sizeof(std::uintptr_t)) : 0;
    }
    return values(call, static_cast<std::uint32_t>(count), memory);
}

std::string PythonReader::type_name(std::uintptr_t object) const {
    const auto type = process_.read<std::uintptr_t>(object + kType);
    const auto name = type ? process_.read<std::uintptr_t>(*type + kTypeName) : std::nullopt;
    if (!name) return {};
    std::array<char, 64> text{};
    const std::size_t size = process_.read_some(*name, text.data(), text.size());
    const std::size_t length = strnlen(text.data(), size);
    return length < size ? std::string(text.data(), length) : std::string();
}

std::string PythonReader::bytes(std::uintptr_t object) {
    const auto size = process_.read<std::uint64_t>(object + kSize);
    if (!size || *size > kMostTableBytes || *size > table_room_) return {};
    table_room_ -= *size;
    std::string bytes(*size, '\0');
    bytes.resize(process_.read_some(object + kBytesData, bytes.data(), bytes.size()));
    return bytes;
}

std::string PythonReader::text(std::uintptr_t object) const {
    const auto length = process_.read<std::uint64_t>(object + kTextLength);
    const auto state = process_.read<std::uint32_t>(object + kTextState);
    // Bits: interned:2, kind:3, compact:1, ascii:1.
    if (!length || !state) return {};
    const std::uint32_t kind = *state >> 2 & 7;
    const bool is_compact = (*state >> 5 & 1) != 0;
    const bool is_ascii = (*state >> 6 & 1) != 0;
    if (!is_compact || (kind != 1 && kind != 2 && kind != 4)) return {};
    std::string raw(std::min<std::uint64_t>(*length, kMostTextBytes / kind) * kind, '\0');
    const std::uintptr_t data = object + layout_.text_bytes + (is_ascii ? 0 : layout_.text_more);
    raw.resize(process_.read_some(data, raw.data(), raw.size()) / kind * kind);
    std::string text;
    for (std::size_t i = 0; i < raw.size(); i += kind) {
        std::uint32_t code = 0;
        std::memcpy(&code, raw.data() + i, kind);  // little-endian, as all supported machines are
        append_code_point(text, code);
    }
    return text;
}

std::int32_t line_at(std::string_view line_table, std::int32_t first_line, std::int32_t instruction) {
    std::size_t at = 0;
    const auto number = [&] {
        std::uint32_t value = 0;
        for (unsigned shift = 0; at < line_table.size(); shift += 6) {
            const auto byte = static_cast<std::uint8_t>(line_table[at++]);
            if (shift < 32) value |= (byte & 63U) << shift;
            if ((byte & 64) == 0) break;
        }
        return value;
    };
    const auto difference = [&] {
        const std::uint32_t value = number();
        return (value & 1) != 0 ? 0 - (value >> 1) : value >> 1;
    };
    auto line = static_cast<std::uint32_t>(first_line);  // unsigned: a damaged table may overflow it
    std::int64_t begin = 0;
    while (at < line_table.size()) {
        const auto head = static_cast<std::uint8_t>(line_table[at++]);
        const unsigned kind = head >> 3 & 15;
        const std::int64_t end = begin + (head & 7) * 2 + 2;
        if (kind == 13 || kind == 14) line += difference();
        if (kind >= 10 && kind <= 12) line += kind - 10;
        if (instruction >= begin && instruction < end)
            return kind == 15 ? 0 : static_cast<std::int32_t>(line);
        if (kind == 14) {
            for (int i = 0; i < 3; ++i) number();
        } else if (kind < 13) {
            at += kind < 10 ? 1 : 2;
        }
        begin = end;
    }
    return 0;
}

std::uint32_t handler_depth(std::string_view exception_table, std::int32_t instruction) {
    std::size_t at = 0;
    const auto number = [&] {
        std::uint32_t value = 0;
        while (at < exception_table.size()) {
            const auto byte = static_cast<std::uint8_t>(exception_table[at++]);
            value = value << 6 | (byte & 63U);
            if ((byte & 64) == 0) break;
        }
        return value;
    };
    const auto unit = static_cast<std::uint32_t>(instruction) / 2;
    while (at < exception_table.size()) {
        const std::uint32_t begin = number();
        const std::uint32_t size = number();
        number();  // where the handler is
        const std::uint32_t depth = number() >> 1;
        if (unit >= begin && unit - begin < size) return depth;
    }
    return 0;
}

}  // namespace marey
