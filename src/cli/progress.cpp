// progress.cpp: a progress line on stderr for operations that take over a second.
#include "cli/progress.h"

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
        std::lock_guard lock(mutex_);
        done_ = true;
    }
    over_.notify_one();
    thread_.join();
}

void Progress::show() {
    std::unique_lock lock(mutex_);
    for (int seconds = 1;; ++seconds) {
        if (over_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) {
            if (seconds > 1) print_error("\r\x1b[K");
            return;
        }
        const std::string line = text_ + " ... " + std::to_string(seconds) + " s";
        print_error("\r" + cut_middle(printable(line), standard_error().width - 1) + "\x1b[K");
    }
}

}  // namespace marey::cli
