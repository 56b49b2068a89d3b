// arrow_parts.cpp: structs of the Arrow C data interface that own what they point to.
#include "results/arrow_parts.h"

namespace marey {
namespace {

/// Stands in for an empty buffer: some readers treat null as a missing buffer.
alignas(64) constexpr std::byte kNothing[64] = {};

/// For an ArrowSchema or an ArrowArray.
template <class Parts, class Struct>
void release(Struct* of) {
    delete static_cast<Parts*>(of->private_data);
    of->release = nullptr;
}

/// Sets what an ArrowSchema and an ArrowArray have in common.
template <class Parts, class Struct>
void own(Struct& of, std::unique_ptr<Parts> parts) {
    for (const auto& child : parts->children) parts->child_pointers.push_back(child.get());
    of.n_children = static_cast<std::int64_t>(parts->children.size());
    of.children = parts->child_pointers.empty() ? nullptr : parts->child_pointers.data();
    of.dictionary = parts->dictionary.get();
    of.release = release<Parts, Struct>;
    of.private_data = parts.release();
}

}  // namespace

OwnedArrow<ArrowSchema> make_schema(const char* format, std::string_view name, bool is_nullable,
                                    std::unique_ptr<SchemaParts> parts) {
    OwnedArrow<ArrowSchema> schema(new ArrowSchema{});
    append_utf8(parts->name, name);
    schema->format = format;
    schema->name = parts->name.c_str();
    schema->flags = is_nullable ? ARROW_FLAG_NULLABLE : 0;
    own(*schema, std::move(parts));
    return schema;
}

OwnedArrow<ArrowArray> make_array(std::size_t length, std::size_t nulls, std::int64_t buffers,
                                  std::unique_ptr<ArrayParts> parts) {
    for (std::int64_t i = 0; i < buffers; ++i) {
        if (parts->buffers[i] != nullptr || (i == kValidity && nulls == 0)) continue;
        parts->buffers[i] = parts->owned[i] == nullptr ? kNothing : parts->owned[i].get();
    }
    OwnedArrow<ArrowArray> array(new ArrowArray{});
    array->length = static_cast<std::int64_t>(length);
    array->null_count = static_cast<std::int64_t>(nulls);
    array->n_buffers = buffers;
    array->buffers = parts->buffers.data();
    own(*array, std::move(parts));
    return array;
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
