// progress.h: a progress line on stderr for operations that take over a second.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace marey::cli {

/// For its lifetime, shows on stderr what is being done and for how long, if stderr is a terminal and CI is
/// not set. Erases the line at the end.
class Progress {
  public:
    explicit Progress(std::string text);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

  private:
    void show();

    std::string text_;
    std::mutex mutex_;
    std::condition_variable over_;
    bool done_ = false;  ///< guarded by mutex_
    std::thread thread_;
};

}  // namespace marey::cli
