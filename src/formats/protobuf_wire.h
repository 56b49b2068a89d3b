// protobuf_wire.h: reads the fields of protobuf messages by their number and wire type.
#pragma once

#include <cstdint>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <string_view>
#include <type_traits>
#include <utility>

namespace marey::perfetto {

template <class Field>
constexpr std::uint32_t varint(Field field) {
    return protozero::tag_and_type(field, protozero::pbf_wire_type::varint);
}
template <class Field>
constexpr std::uint32_t fixed64(Field field) {
    return protozero::tag_and_type(field, protozero::pbf_wire_type::fixed64);
}
template <class Field>
constexpr std::uint32_t bytes(Field field) {
    return protozero::tag_and_type(field, protozero::pbf_wire_type::length_delimited);
}

/// A message whose fields are read one by one. Throws protozero::exception if it is damaged.
class Message : public protozero::pbf_reader {
  public:
    explicit Message(std::string_view text) : protozero::pbf_reader(text.data(), text.size()) {}
    /// The next field, as encoded by the functions above; 0: there is none.
    std::uint32_t next_field() { return next() ? tag_and_type() : 0; }
};

/// Takes the value of one field.
template <class Take>
struct FieldReader {
    std::uint32_t field;
    std::uint32_t packed;  ///< the same field in another form, or `field`
    Take take;             ///< gets the message, and must consume the field
};
template <class Take>
FieldReader<Take> on(std::uint32_t field, Take take) {
    return {field, field, std::move(take)};
}
/// Stores a number, a bool or a text, or appends it to a vector.
template <class T>
auto into(std::uint32_t field, T& value) {
    return on(field, [&value](Message& message) {
        if constexpr (requires { typename T::allocator_type; }) {
            typename T::value_type more{};
            into(0, more).take(message);
            value.push_back(more);
        } else if constexpr (std::is_same_v<T, std::optional<std::uint64_t>>) {
            value = message.get_uint64();
        } else if constexpr (std::is_same_v<T, std::string_view>) {
            value = message.get_view();
        } else {
            value = static_cast<T>(message.get_uint64());
        }
    });
}
/// Calls `take` for each number of a repeated field, packed or not.
auto each_varint(auto field, auto take) {
    const auto take_all = [take = std::move(take)](Message& message) {
        if (message.wire_type() == protozero::pbf_wire_type::varint) return take(message.get_uint64());
        for (const std::uint64_t value : message.get_packed_uint64()) take(value);
    };
    return FieldReader<decltype(take_all)>{varint(field), bytes(field), take_all};
}
auto each_fixed64(auto field, auto take) {
    const auto take_all = [take = std::move(take)](Message& message) {
        if (message.wire_type() == protozero::pbf_wire_type::fixed64) return take(message.get_fixed64());
        for (const std::uint64_t value : message.get_packed_fixed64()) take(value);
    };
    return FieldReader<decltype(take_all)>{fixed64(field), bytes(field), take_all};
}
/// Takes fields that have no other reader; it comes last. Without it they are skipped.
template <class Take>
FieldReader<Take> otherwise(Take take) {
    return on(0, std::move(take));
}
/// Reads a message. Throws protozero::exception if it is damaged.
template <class... Takes>
void read_fields(std::string_view text, const FieldReader<Takes>&... readers) {
    Message message(text);
    while (const std::uint32_t field = message.next_field()) {
        const bool is_read = ((field == readers.field || field == readers.packed || readers.field == 0
                                   ? (readers.take(message), true)
                                   : false) ||
                              ...);
        if (!is_read) message.skip();
    }
}

}  // namespace marey::perfetto
