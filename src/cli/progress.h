// progress.h: a line on stderr for what takes over a second.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace marey::cli {

/// While it lives: says on stderr, where that is a terminal, what is going on and for how long. Leaves no
/// trace there.
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
