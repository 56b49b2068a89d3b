// values.h: encodes the typed values of a range onto the thread's side stack.
#pragma once

#include <cstring>
#include <string_view>
#include <type_traits>

#include <marey/detail/hot_path.h>

namespace marey::detail {
inline namespace layout1 {

inline constexpr std::size_t kMaxValues = 16;

/// The string ids of the keys at one call site, filled at first use. Keys must be string literals.
struct KeyIds {
    std::uint32_t ids[kMaxValues] = {};
};

/// Stores a string once and returns its id; 0 if there is no space.
MAREY_API std::uint32_t intern_string(std::string_view text) noexcept;

/// Space for the values of one range at the top of this thread's side stack. While it is open, the thread is
/// busy and must not push anything else. `place` is null if nothing can be recorded; then writes have no
/// effect.
struct SideBuffer {
    std::byte* place = nullptr;
    std::byte* limit = nullptr;
    bool is_inline = false;
};
MAREY_API SideBuffer open_side_slow() noexcept;
MAREY_API std::uint32_t close_side_slow(std::byte* end) noexcept;
inline constexpr std::size_t kMinSideBytes = 1024;  ///< space needed for an entry in the thread's block

inline SideBuffer open_side() noexcept {
    ThreadState* const thread = current_thread;
    if (MAREY_DETAIL_UNLIKELY(!is_usual(thread) || thread->side_used + kMinSideBytes > kSideBytes)) {
        return open_side_slow();
    }
    set_busy(thread);
    std::byte* const place = thread->side + thread->side_used + sizeof(SideEntry);
    return {place, thread->side + kSideBytes, true};
}
/// Ends the entry and returns its handle (0: none). `end` is one past the last byte written.
inline std::uint32_t close_side(const SideBuffer& buffer, std::byte* end) noexcept {
    if (MAREY_DETAIL_UNLIKELY(!buffer.is_inline)) return close_side_slow(end);
    ThreadState* const thread = current_thread;
    const std::uint32_t offset = thread->side_used;
    const SideEntry head{static_cast<std::uint32_t>(end - buffer.place), thread->depth};
    std::memcpy(thread->side + offset, &head, sizeof head);
    thread->side_used =
        (offset + static_cast<std::uint32_t>(sizeof head) + head.bytes + 7) & ~std::uint32_t{7};
    clear_busy(thread);
    return offset / 8 + 1;
}

/// Closes the buffer without an entry. Only for inline buffers.
inline void drop_side_buffer() noexcept {
    clear_busy(current_thread);
}

template <class T>
inline constexpr bool kIsText = std::is_convertible_v<const T&, std::string_view>;
template <class T>
inline constexpr bool kIsScalar = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T, class = void>
inline constexpr bool kIsStack = false;
template <class T>
inline constexpr bool kIsStack<T, std::void_t<decltype(std::declval<const T&>().frame_words())>> = true;
template <class T, class = void>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<
    T, std::void_t<decltype(std::begin(std::declval<const T&>()), std::end(std::declval<const T&>()))>> =
    !kIsText<T>;
/// True for std::vector<bool>, whose iterators return proxies.
template <class T, class = void>
inline constexpr bool kHoldsBooleans = false;
template <class T>
inline constexpr bool kHoldsBooleans<T, std::void_t<typename T::value_type>> =
    std::is_same_v<typename T::value_type, bool>;

/// Appends values to a SideBuffer. Values that do not fit are truncated and marked; nothing fails.
class ValueWriter {
  public:
    explicit ValueWriter(SideBuffer buffer) noexcept : cursor_(buffer.place), limit_(buffer.limit) {}
    std::byte* end() const noexcept { return cursor_; }

    template <class T>
    void add(std::uint32_t key, const T& value) noexcept {
        if constexpr (std::is_same_v<T, bool>) {
            scalar(key, 1, static_cast<std::uint64_t>(value));
        } else if constexpr (std::is_enum_v<T>) {
            add(key, static_cast<std::underlying_type_t<T>>(value));
        } else if constexpr (std::is_floating_point_v<T>) {
            const double real = static_cast<double>(value);
            std::uint64_t bits;
            std::memcpy(&bits, &real, sizeof bits);
            scalar(key, 3, bits);
        } else if constexpr (std::is_integral_v<T>) {
            scalar(key, 2, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
        } else if constexpr (kIsText<T>) {
            if constexpr (std::is_pointer_v<T>) {
                if (value == nullptr) return header(key, 0, 0, 0);
            }
            text(key, std::string_view(value));
        } else if constexpr (kIsStack<T>) {
            if (value.number() != 0)
                header(value.number(), kValueStackNumber, value.is_cut() ? kValueTruncated : std::uint8_t{0},
                       0);
            else
                stack(value.frame_words().data(), value.frame_words().size(), value.is_cut());
        } else {
            static_assert(kIsList<T>,
                          "a value is a boolean, a number, an enumerator, text, a list of these, or a stack");
            list(key, value);
        }
    }

  private:
    bool fits(std::size_t bytes) const noexcept {
        return static_cast<std::size_t>(limit_ - cursor_) >= bytes;
    }
    void header(std::uint32_t key, std::uint8_t kind, std::uint8_t flags, std::uint16_t count) noexcept {
        if (!fits(sizeof(ValueHeader))) return;
        const ValueHeader head{key, kind, flags, count};
        std::memcpy(cursor_, &head, sizeof head);
        cursor_ += sizeof head;
    }
    void scalar(std::uint32_t key, std::uint8_t kind, std::uint64_t bits) noexcept {
        if (!fits(sizeof(ValueHeader) + sizeof bits)) return;
        header(key, kind, 0, 0);
        std::memcpy(cursor_, &bits, sizeof bits);
        cursor_ += sizeof bits;
    }
    void text(std::uint32_t key, std::string_view value) noexcept {
        if (!fits(sizeof(ValueHeader))) return;
        const std::size_t room = static_cast<std::size_t>(limit_ - cursor_) - sizeof(ValueHeader);
        std::size_t bytes = value.size();
        if (bytes > kMaxStringBytes) bytes = kMaxStringBytes;
        if (bytes > (room & ~std::size_t{7})) bytes = room & ~std::size_t{7};
        header(key, 4, bytes < value.size() ? kValueTruncated : std::uint8_t{0},
               static_cast<std::uint16_t>(bytes));
        if (bytes % 8 != 0) std::memset(cursor_ + bytes - bytes % 8, 0, 8);
        if (bytes != 0) std::memcpy(cursor_, value.data(), bytes);
        cursor_ += (bytes + 7) & ~std::size_t{7};
    }
    void stack(const std::uint64_t* frames, std::size_t frame_count, bool is_cut) noexcept {
        if (frame_count == 0 || !fits(sizeof(ValueHeader) + sizeof(std::uint64_t))) return;
        const std::size_t room =
            (static_cast<std::size_t>(limit_ - cursor_) - sizeof(ValueHeader)) / sizeof(std::uint64_t);
        const std::size_t count = frame_count < room ? frame_count : room;
        header(0, kValueStack, is_cut || count < frame_count ? kValueTruncated : std::uint8_t{0},
               static_cast<std::uint16_t>(count));
        std::memcpy(cursor_, frames, count * sizeof(std::uint64_t));
        cursor_ += count * sizeof(std::uint64_t);
    }
    template <class T>
    void list(std::uint32_t key, const T& values) noexcept {
        if (!fits(sizeof(ValueHeader))) return;
        std::byte* const head = cursor_;
        std::uint16_t count = 0;
        std::uint8_t flags = 0;
        cursor_ += sizeof(ValueHeader);
        for (const auto& value : values) {
            std::byte* const before = cursor_;
            using Item = std::remove_cv_t<std::remove_reference_t<decltype(value)>>;
            if (count < kMaxListItems) {
                if constexpr (kHoldsBooleans<T>) {
                    add(0, static_cast<bool>(value));
                } else {
                    static_assert(kIsScalar<Item> || kIsText<Item>, "lists hold booleans, numbers or text");
                    add(0, value);
                }
            }
            if (cursor_ == before) {
                flags = kValueTruncated;
                break;
            }
            ++count;
        }
        const ValueHeader filled{key, 5, flags, count};
        std::memcpy(head, &filled, sizeof filled);
    }

    std::byte* cursor_;
    std::byte* limit_;
};

inline std::uint32_t key_id(std::uint32_t& cached, std::string_view key) noexcept {
    std::uint32_t id = load_relaxed(cached);
    if (id == 0) {
        id = intern_string(key);
        store_relaxed(cached, id);
    }
    return id;
}

template <class Key, class Value, class... More>
inline void write_pairs(ValueWriter& writer, std::uint32_t* ids, const Key& key, const Value& value,
                        const More&... more) noexcept {
    writer.add(key_id(*ids, key), value);
    if constexpr (sizeof...(more) != 0) write_pairs(writer, ids + 1, more...);
}

/// Pushes "key", value, "key", value, ... and returns the handle for open_slow; 0 if nothing was recorded.
template <class... Args>
inline std::uint32_t push_values(KeyIds& keys, const Args&... args) noexcept {
    static_assert(sizeof...(Args) % 2 == 0, "values come in pairs: \"key\", value");
    static_assert(sizeof...(Args) / 2 <= kMaxValues, "at most 16 values for one range");
    const SideBuffer buffer = open_side();
    if (buffer.place == nullptr) return 0;
    ValueWriter writer(buffer);
    write_pairs(writer, keys.ids, args...);
    return close_side(buffer, writer.end());
}

}  // namespace layout1
}  // namespace marey::detail
