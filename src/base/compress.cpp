// compress.cpp: zstd, or the error that it is missing.
#include "base/compress.h"

#include <string>

#include <marey/error.h>

#ifndef MAREY_HAVE_ZSTD
#define MAREY_HAVE_ZSTD 0
#endif

#if MAREY_HAVE_ZSTD
#include <zstd.h>

#include <memory>
#endif

namespace marey {

#if MAREY_HAVE_ZSTD

namespace {

template <auto kFree>
struct Freeing {
    void operator()(auto* context) const noexcept { kFree(context); }
};

}  // namespace

bool can_compress() noexcept {
    return true;
}

std::vector<std::byte> compress(std::span<const std::byte> bytes, int level) {
    // A new context costs more than a few kilobytes do, so a thread keeps one. After more bytes it would hold
    // megabytes.
    constexpr std::size_t kMaxKeptBytes = std::size_t{64} << 10;
    static thread_local std::unique_ptr<ZSTD_CCtx, Freeing<ZSTD_freeCCtx>> context;
    if (context == nullptr) context.reset(ZSTD_createCCtx());
    if (context == nullptr) throw Error("zstd: out of memory");
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
    std::vector<std::byte> frame(ZSTD_compressBound(bytes.size()));
    const std::size_t size =
        ZSTD_compress2(context.get(), frame.data(), frame.size(), bytes.data(), bytes.size());
    if (bytes.size() > kMaxKeptBytes) context.reset();
    if (ZSTD_isError(size)) throw Error(std::string("zstd: ") + ZSTD_getErrorName(size));
    frame.resize(size);
    return frame;
}

std::vector<std::byte> decompress(std::span<const std::byte> frame, std::size_t size) {
    std::vector<std::byte> bytes(size);
    static thread_local std::unique_ptr<ZSTD_DCtx, Freeing<ZSTD_freeDCtx>> context;
    if (context == nullptr) context.reset(ZSTD_createDCtx());
    if (context == nullptr) throw Error("zstd: out of memory");
    const std::size_t got =
        ZSTD_decompressDCtx(context.get(), bytes.data(), bytes.size(), frame.data(), frame.size());
    if (ZSTD_isError(got)) throw Error(std::string("zstd: ") + ZSTD_getErrorName(got));
    if (got != size) throw Error("zstd: the frame does not have the stated size");
    return bytes;
}

#else

namespace {

[[noreturn]] void fail() {
    throw Error("this Marey was built without zstd: it can neither write nor read packed captures");
}

}  // namespace

bool can_compress() noexcept {
    return false;
}

std::vector<std::byte> compress(std::span<const std::byte>, int) {
    fail();
}

std::vector<std::byte> decompress(std::span<const std::byte>, std::size_t) {
    fail();
}

#endif

}  // namespace marey
