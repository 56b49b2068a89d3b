// parallel.h: the same work on many items, on as many cores as there are.
#pragma once

#include <cstddef>
#include <functional>

namespace kymo {

/// Calls work(0), ..., work(count - 1), each once, in any order, on at most `threads` threads (0: as many as
/// there are cores) of which the caller is one. Returns when all are done. The first exception is passed on;
/// the items that have not been begun by then are left out.
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work, unsigned threads = 0);

}  // namespace kymo
