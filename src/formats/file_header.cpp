// file_header.cpp: reads the start of a file, or all of it; decompresses damaged gzip data as far as
// possible.
#include "formats/file_header.h"

#include <errno.h>
#include <sys/stat.h>

#include <cstring>
#include <memory>

#include <marey/error.h>

#include "json/input_text.h"

namespace marey {
namespace {

constexpr std::size_t kHeadBytes = 64 * 1024;

}  // namespace

std::vector<std::byte> read_file_head(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) throw Error(path + ": " + std::strerror(errno));
    if (S_ISDIR(status.st_mode)) throw Error(path + ": " + std::strerror(EISDIR));
    if (!S_ISREG(status.st_mode)) return {};
    const std::unique_ptr<ByteSource> source = open_source(path);
    std::vector<std::byte> head(kHeadBytes);
    std::size_t size = 0;
    while (size < head.size()) {
        const std::size_t count =
            source->read(reinterpret_cast<char*>(head.data()) + size, head.size() - size);
        if (count == 0) break;
        size += count;
    }
    if (size == 0 && !source->damage().empty()) throw Error(path + ": " + source->damage());
    head.resize(size);
    return head;
}

std::string read_whole_file(const std::string& path, std::string& damage) {
    const std::unique_ptr<ByteSource> source = open_source(path);
    constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
    std::string text;
    std::size_t count = 0;
    do {
        const std::size_t before = text.size();
        text.resize(before + kPieceBytes);
        count = source->read(text.data() + before, kPieceBytes);
        text.resize(before + count);
    } while (count != 0);
    damage = source->damage();
    return text;
}

}  // namespace marey
