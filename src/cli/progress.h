// progress.h: a progress line on stderr for operations that take over a second.
#pragma once

#include <string>
#include <string_view>
#include <thread>

#include <marey/detail/thread_safety.h>
#include <marey/progress.h>

namespace marey::cli {

/// For its lifetime, shows on stderr what is being done and for how long, with a bar if it is known how much
/// is done, if stderr is a terminal and CI is not set. Erases the line at the end. The work must be done on
/// the thread that creates it.
class Progress {
  public:
    explicit Progress(std::string text);
    ~Progress();

  private:
    void show();

    std::string text_;
    WorkProgress work_;
    const WatchedWork watched_{work_};
    Mutex mutex_;
    Condition over_;
    bool done_ MAREY_GUARDED_BY(mutex_) = false;
    std::thread thread_;
};

/// The line: what is done, a bar, a percentage and the time. `share`: 0 to 1, or negative if it is not known
/// how much is done. At most `width` columns: the bar is left out first, then the text is cut.
std::string progress_line(std::string_view text, int seconds, double share, std::size_t width);

}  // namespace marey::cli
