// control_page.h: the file through which one process asks another one to record.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace marey {

/// The whole file. Numbers that change are read and written atomically; a question belongs to `request`, an
/// answer to `answered`, and both numbers change after the texts.
struct ControlPage {
    static constexpr char kMagic[] = "MAREYCTL";
    static constexpr std::uint32_t kVersion = 1;

    char magic[8];
    std::uint32_t version;
    std::uint32_t is_recording;
    std::int64_t pid;
    std::uint64_t start;  ///< of the process, in clock ticks since boot: ids are used again
    std::int32_t rank;
    std::uint32_t unused;
    std::uint32_t request;   ///< counts questions; a futex
    std::uint32_t answered;  ///< the last question that has an answer; a futex
    std::uint32_t has_failed;
    std::uint32_t reserved;
    char question[3072];
    char answer[968];
};
static_assert(sizeof(ControlPage) == 4096);

/// As much of it as there is space for.
template <std::size_t N>
void set_text(char (&place)[N], std::string_view text) noexcept {
    const std::size_t length = text.copy(place, N - 1);
    place[length] = '\0';
}
template <std::size_t N>
std::string text_of(const char (&place)[N]) {
    return {place, strnlen(place, N)};
}

/// The folder of this user's pages; "" if there is none and it is not to be created. Throws marey::Error if
/// others could use it.
std::string control_folder(bool creates);

/// On CLOCK_MONOTONIC, as requests have it.
inline std::int64_t monotonic_ns() noexcept {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// Waits until a word no longer has this value, at most so long (< 0: for ever). It may return early.
void wait_for_change(const std::uint32_t& word, std::uint32_t value, std::int64_t timeout_ns) noexcept;
void wake_all(const std::uint32_t& word) noexcept;

/// A page, as long as this object exists.
class MappedPage {
  public:
    /// An existing one. Throws marey::Error if it is not a page of this user.
    explicit MappedPage(const std::string& path);
    /// A new one. Throws marey::Error.
    MappedPage(const std::string& path, const ControlPage& content);
    ~MappedPage();
    MappedPage(const MappedPage&) = delete;
    MappedPage& operator=(const MappedPage&) = delete;

    ControlPage* operator->() const noexcept { return page_; }
    ControlPage& operator*() const noexcept { return *page_; }

  private:
    void map(int file, const std::string& path);

    ControlPage* page_ = nullptr;
};

}  // namespace marey
