// parallel.h: the same work on many items, on all available cores.
#pragma once

#include <cstddef>
#include <functional>

namespace marey {

/// How many cores the calling thread, and the threads that it starts, may run on.
unsigned usable_cores();

/// Calls work(0) on the caller's thread and work(1), ..., work(threads - 1) on separate threads, or fewer if
/// they cannot be started. Returns when all have. The first exception is passed on; `work` itself must make
/// the others end.
void on_threads(unsigned threads, const std::function<void(unsigned)>& work);

/// Calls work(0), ..., work(count - 1), each once, in any order, on at most `threads` threads (0:
/// usable_cores()) including the caller's. Returns when all are done. The first exception is passed on; items
/// that have not been begun by then are skipped.
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work, unsigned threads = 0);

}  // namespace marey
