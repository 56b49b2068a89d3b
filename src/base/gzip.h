// gzip.h: gzip in memory.
#pragma once

#include <string>
#include <string_view>

#if MAREY_HAVE_ZLIB
#include <zlib.h>
#endif

namespace marey {

/// The bytes, less than 4 GiB, as a gzip file. Levels: 1 (fast) to 9 (small). Empty if that fails or this
/// build has no zlib.
inline std::string gzipped([[maybe_unused]] std::string_view bytes, [[maybe_unused]] int level) {
    std::string result;
#if MAREY_HAVE_ZLIB
    constexpr int kGzip = 15 + 16;  // the largest window, with gzip's header
    z_stream stream{};
    if (deflateInit2(&stream, level, Z_DEFLATED, kGzip, 9, Z_DEFAULT_STRATEGY) != Z_OK) return result;
    result.resize(deflateBound(&stream, bytes.size()));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(result.data());
    stream.avail_out = static_cast<uInt>(result.size());
    const bool is_done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    result.resize(is_done ? stream.total_out : 0);
    deflateEnd(&stream);
#endif
    return result;
}

}  // namespace marey
