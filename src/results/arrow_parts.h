// arrow_parts.h: structs of the Arrow C data interface that own what they point to.
#pragma once

#include <any>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>

#include <marey/arrow.h>

#include "base/utf8.h"

namespace marey {

inline constexpr const char* kTextFormat = "U";  // utf8 with 64-bit offsets
inline constexpr std::int64_t kValidity = 0;     // index of the validity buffer

/// Releases what a reader has not moved out.
struct ReleaseArrow {
    template <class Struct>
    void operator()(Struct* owned) const noexcept {
        if (owned->release != nullptr) owned->release(owned);
        delete owned;
    }
};
/// An ArrowSchema or an ArrowArray.
template <class Struct>
using OwnedArrow = std::unique_ptr<Struct, ReleaseArrow>;

/// Moves the struct to where a reader wants it.
template <class Struct>
void move_to(Struct* out, OwnedArrow<Struct> owned) {
    *out = *owned;
    owned->release = nullptr;
}

/// The structs that a struct owns.
template <class Struct>
struct ArrowParts {
    std::vector<OwnedArrow<Struct>> children;
    std::vector<Struct*> child_pointers;
    OwnedArrow<Struct> dictionary;
};

struct SchemaParts : ArrowParts<ArrowSchema> {
    std::string name;
};

OwnedArrow<ArrowSchema> make_schema(const char* format, std::string_view name, bool is_nullable,
                                    std::unique_ptr<SchemaParts> parts = std::make_unique<SchemaParts>());

struct ArrayParts : ArrowParts<ArrowArray> {
    std::any kept;  ///< keeps the exported data alive
    std::array<std::unique_ptr<std::byte[]>, 3> owned;
    std::array<const void*, 3> buffers{};
};

/// Owned buffers are used unless a pointer is given already.
OwnedArrow<ArrowArray> make_array(std::size_t length, std::size_t nulls, std::int64_t buffers,
                                  std::unique_ptr<ArrayParts> parts);

/// Sets the bits from `first` to before `end`.
void set_bits(std::byte* bits, std::size_t first, std::size_t end);

/// Room for `count` bits, which are 0.
inline std::byte* no_bits(std::unique_ptr<std::byte[]>& bytes, std::size_t count) {
    bytes = std::make_unique<std::byte[]>((count + 7) / 8);
    return bytes.get();
}

/// Room for `count` values, which are not initialized.
template <class T>
T* room_for(std::unique_ptr<std::byte[]>& bytes, std::size_t count) {
    bytes = std::make_unique_for_overwrite<std::byte[]>(count * sizeof(T));
    return reinterpret_cast<T*>(bytes.get());
}

/// Texts stored one after another, with their end offsets.
class TextColumn {
  public:
    void add(std::string_view bytes) {
        append_utf8(text_, bytes);
        offsets_.push_back(static_cast<std::int64_t>(text_.size()));
    }
    void add_null() { offsets_.push_back(offsets_.back()); }
    std::size_t size() const { return offsets_.size() - 1; }

    void move_into(ArrayParts& parts) {
        auto* const offsets = room_for<std::int64_t>(parts.owned[1], offsets_.size());
        std::memcpy(offsets, offsets_.data(), offsets_.size() * sizeof offsets_[0]);
        char* const text = room_for<char>(parts.owned[2], text_.size());
        if (!text_.empty()) std::memcpy(text, text_.data(), text_.size());
    }

  private:
    std::string text_;
    std::vector<std::int64_t> offsets_{0};
};

}  // namespace marey
