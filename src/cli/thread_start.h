// thread_start.h: the functions with which threads of Python begin.
#pragma once

#include <string_view>

namespace marey::cli {

/// A function with which every Python thread begins.
inline bool is_thread_start(std::string_view name) {
    return name.ends_with("Thread._bootstrap") || name.ends_with("Thread._bootstrap_inner") ||
           name.ends_with("): Thread.run") || name == "_contextvars.Context.run";  // since Python 3.14
}

}  // namespace marey::cli
