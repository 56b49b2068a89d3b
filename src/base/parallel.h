// parallel.h: the same work on many items, on as many cores as there are.
#pragma once

#include <cstddef>
#include <functional>

namespace marey {

/// How many cores the calling thread, and those that it starts, may run on.
unsigned usable_cores();

/// Calls work(0) on the caller's thread and work(1), ..., work(threads - 1) on threads of their own, less
/// those that are not to be had. Returns when all have. The first exception is passed on; that the others end
/// then is for `work` to see to.
void on_threads(unsigned threads, const std::function<void(unsigned)>& work);

/// Calls work(0), ..., work(count - 1), each once, in any order, on at most `threads` threads (0:
/// usable_cores()) of which the caller is one. Returns when all are done. The first exception is passed on;
/// the items that have not been begun by then are left out.
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work, unsigned threads = 0);

}  // namespace marey
