// stack_bounds.cpp: the memory of the stack that contains an address.
#include "native/stack_bounds.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

namespace marey {
namespace {

/// One pass over the lines of /proc/self/maps, "low-high perms offset device inode path", in any pieces.
class MappingSearch {
  public:
    explicit MappingSearch(std::uintptr_t at) noexcept : at_(at) {}

    /// True: a line with the address is complete.
    bool read(char c) noexcept {
        if (c == '\n') {
            if (found_.holds(at_)) return true;
            before_ = found_.high;
            found_ = {};
            place_ = Place::low;
            matched_ = 0;
        } else if (place_ == Place::rest) {
            if (matched_ < kStackName.size()) matched_ = c == kStackName[matched_] ? matched_ + 1 : 0;
        } else if (c == '-') {
            place_ = Place::high;
        } else if (c == ' ') {
            place_ = Place::rest;
        } else {
            std::uintptr_t& number = place_ == Place::low ? found_.low : found_.high;
            number = number << 4 | static_cast<std::uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
        }
        return false;
    }

    StackBounds found() const noexcept {
        StackBounds bounds = found_;
        // The main thread's stack grows: the kernel maps nothing else so close below it.
        if (matched_ == kStackName.size())
            bounds.low = std::min(bounds.low, std::max(before_, bounds.high - kRoomToGrow));
        return bounds;
    }

  private:
    enum class Place : std::uint8_t { low, high, rest };
    static constexpr std::string_view kStackName = "[stack]";
    static constexpr std::uintptr_t kRoomToGrow = std::uintptr_t{128} << 20;

    std::uintptr_t at_;
    std::uintptr_t before_ = 0;  ///< end of the mapping before
    StackBounds found_;
    Place place_ = Place::low;
    std::size_t matched_ = 0;
};

StackBounds mapping_at(std::uintptr_t at) noexcept {
    const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (maps < 0) return {};
    MappingSearch search(at);
    std::array<char, 1024> buffer;  // small: this may be an alternate signal stack
    bool is_found = false;
    for (ssize_t count = 0; !is_found && (count = read(maps, buffer.data(), buffer.size())) > 0;)
        is_found = std::any_of(buffer.data(), buffer.data() + count, [&](char c) { return search.read(c); });
    close(maps);
    return is_found ? search.found() : StackBounds{};
}

}  // namespace

StackBounds stack_bounds_at(std::uintptr_t at) noexcept {
    const int error = errno;
    StackBounds bounds = mapping_at(at);
    errno = error;
    // The C library's block about a thread is at the end of its stack; the mapping may contain more.
    const auto thread = static_cast<std::uintptr_t>(pthread_self());
    if (thread > at && bounds.holds(thread)) bounds.high = thread;
    return bounds;
}

}  // namespace marey
