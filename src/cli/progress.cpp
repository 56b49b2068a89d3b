// progress.cpp: a progress line on stderr for operations that take over a second.
#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include "cli/terminal.h"
#include "cli/text_format.h"

namespace marey::cli {

Progress::Progress(std::string text) : text_(std::move(text)) {
    if (!standard_error().progress) return;
    try {
        thread_ = std::thread([this] { show(); });
    } catch (const std::system_error&) {
        // Without a thread no progress is shown.
    }
}

Progress::~Progress() {
    if (!thread_.joinable()) return;
    {
        const ScopedLock lock(mutex_);
        done_ = true;
    }
    over_.notify_one();
    thread_.join();
}

void Progress::show() {
    const ScopedLock lock(mutex_);
    auto next = std::chrono::steady_clock::now();
    for (int seconds = 1;; ++seconds) {
        next += std::chrono::seconds(1);
        while (!done_ && over_.wait_until(mutex_, next)) {
        }
        if (done_) {
            if (seconds > 1) print_error("\r\x1b[K");
            return;
        }
        const std::uint64_t total = work_.total;
        const double share =
            total == 0 ? -1
                       : std::min(1.0, static_cast<double>(work_.done.load()) / static_cast<double>(total));
        print_error("\r" + progress_line(text_, seconds, share, standard_error().width - 1) + "\x1b[K");
    }
}

std::string progress_line(std::string_view text, int seconds, double share, std::size_t width) {
    constexpr std::size_t kBarColumns = 20, kLeastText = 20;
    std::string end = fmt::format(" {} s", seconds);
    if (share < 0) {
        end = " ..." + end;
    } else {
        end = fmt::format(" {:3.0f}%", 100 * share) + end;
        if (width >= kLeastText + kBarColumns + 3 + end.size()) {
            const auto filled = static_cast<std::size_t>(share * kBarColumns);
            end = " [" + std::string(filled, '#') + std::string(kBarColumns - filled, '.') + "]" + end;
        }
    }
    const std::size_t room = width > end.size() ? width - end.size() : 0;
    return cut_middle(cut_middle(printable(text), room) + end, width);
}

}  // namespace marey::cli
