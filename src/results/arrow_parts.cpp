// arrow_parts.cpp: structs of the Arrow C data interface that own what they point to.
#include "results/arrow_parts.h"

namespace marey {
namespace {

/// Stands in for an empty buffer: some readers treat null as a missing buffer.
alignas(64) constexpr std::byte kNothing[64] = {};

/// For an ArrowSchema or an ArrowArray.
template <class Parts, class Struct>
void release(Struct* of) {
    auto* const parts = static_cast<Parts*>(of->private_data);
    for (const auto& child : parts->children) {
        if (child->release != nullptr) child->release(child.get());
    }
    if (parts->dictionary != nullptr && parts->dictionary->release != nullptr)
        parts->dictionary->release(parts->dictionary.get());
    delete parts;
    of->release = nullptr;
}

}  // namespace

void fill_schema(ArrowSchema& schema, const char* format, std::string_view name, bool is_nullable,
                 std::unique_ptr<SchemaParts> parts) {
    parts->name = name;
    for (const auto& child : parts->children) parts->child_pointers.push_back(child.get());
    schema = {};
    schema.format = format;
    schema.name = parts->name.c_str();
    schema.flags = is_nullable ? ARROW_FLAG_NULLABLE : 0;
    schema.n_children = static_cast<std::int64_t>(parts->children.size());
    schema.children = parts->child_pointers.empty() ? nullptr : parts->child_pointers.data();
    schema.dictionary = parts->dictionary.get();
    schema.release = release<SchemaParts, ArrowSchema>;
    schema.private_data = parts.release();
}

void fill_array(ArrowArray& array, std::size_t length, std::size_t nulls, std::int64_t buffers,
                std::unique_ptr<ArrayParts> parts) {
    for (std::int64_t i = 0; i < buffers; ++i) {
        if (parts->buffers[i] != nullptr || (i == kValidity && nulls == 0)) continue;
        parts->buffers[i] = parts->owned[i] == nullptr ? kNothing : parts->owned[i].get();
    }
    for (const auto& child : parts->children) parts->child_pointers.push_back(child.get());
    array = {};
    array.length = static_cast<std::int64_t>(length);
    array.null_count = static_cast<std::int64_t>(nulls);
    array.n_buffers = buffers;
    array.n_children = static_cast<std::int64_t>(parts->children.size());
    array.buffers = parts->buffers.data();
    array.children = parts->child_pointers.empty() ? nullptr : parts->child_pointers.data();
    array.dictionary = parts->dictionary.get();
    array.release = release<ArrayParts, ArrowArray>;
    array.private_data = parts.release();
}

void set_bits(std::byte* bits, std::size_t first, std::size_t end) {
    for (; first < end && first % 8 != 0; ++first)
        bits[first / 8] |= static_cast<std::byte>(1u << (first % 8));
    if (first == end) return;
    std::memset(bits + first / 8, 0xff, end / 8 - first / 8);
    for (std::size_t at = end - end % 8; at < end; ++at)
        bits[at / 8] |= static_cast<std::byte>(1u << (at % 8));
}

}  // namespace marey
