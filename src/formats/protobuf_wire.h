// protobuf_wire.h: combines a field's number and wire type, for switch statements over message fields.
#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string_view>

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

}  // namespace marey::perfetto
