// trace_cache.cpp: a file in the cache is a header, the columns of the range table as they are in memory, and
// the other tables as in a saved trace.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <filesystem>

#include <marey/load.h>

#include "base/checksum.h"
#include "base/environment.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "base/parallel.h"
#include "trace/saved_trace.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

namespace fs = std::filesystem;

constexpr char kCacheMagic[8] = {'M', 'A', 'R', 'E', 'Y', 'V', 'C', '1'};  // the last letter is the version
constexpr const char* kSuffix = ".columns";
constexpr std::size_t kAlignment = 4096;
constexpr std::size_t kPieceBytes = std::size_t{16} << 20;

/// The first bytes of a file, in the byte order of the machine: a cache is not carried elsewhere.
struct Header {
    char magic[8];
    std::uint64_t key;       ///< checksum of the key
    std::uint64_t rows;      ///< of the range table
    std::uint64_t others;    ///< bytes of the other tables
    std::uint64_t samples;   ///< checksum of samples of the columns
    std::uint64_t checksum;  ///< of the members above
};

std::uint64_t checksum_of(const void* bytes, std::size_t size) noexcept {
    return checksum64({static_cast<const std::byte*>(bytes), size});
}
std::uint64_t checksum_of(const std::string& text) noexcept {
    return checksum_of(text.data(), text.size());
}
std::uint64_t checksum_of(const Header& header) noexcept {
    return checksum_of(&header, offsetof(Header, checksum));
}

/// Identifies the contents of a file without reading it; empty if that is not possible.
std::string key_of(const std::string& path, const std::string& format) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
    std::string key;
    for (const auto number :
         {static_cast<std::int64_t>(info.st_dev), static_cast<std::int64_t>(info.st_ino),
          static_cast<std::int64_t>(info.st_size), static_cast<std::int64_t>(info.st_mtim.tv_sec),
          static_cast<std::int64_t>(info.st_mtim.tv_nsec)})
        key += std::to_string(number) + " ";
    return key + format;
}

/// The folder, without a '/' at its end; empty if there is none.
std::string cache_folder() {
    std::string base = environment_text("XDG_CACHE_HOME");
    if (base.empty() || base[0] != '/') {
        base = environment_text("HOME");
        if (base.empty()) return {};
        base += "/.cache";
    }
    return base + "/marey";
}

/// One file per traced file: its device and inode, the first two words of the key.
std::string cache_file(const std::string& key) {
    const std::string folder = cache_folder();
    if (folder.empty() || key.empty()) return {};
    std::string name = key.substr(0, key.find(' ', key.find(' ') + 1));
    std::replace(name.begin(), name.end(), ' ', '-');
    return folder + "/" + name + kSuffix;
}

std::size_t aligned(std::size_t bytes) noexcept {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// The columns in their order in the file.
void visit_range_columns(auto& ranges, auto visit) {
    visit(ranges.start_ns);
    visit(ranges.duration_ns);
    visit(ranges.self_ns);
    visit(ranges.site);
    visit(ranges.parent);
    visit(ranges.depth);
    visit(ranges.flags);
}

std::uint64_t range_bytes(std::uint64_t rows) {
    RangeColumns columns;
    std::uint64_t bytes = 0;
    visit_range_columns(columns, [&](auto& column) { bytes += aligned(rows * sizeof column[0]); });
    return bytes;
}

/// A checksum of one page in each MiB. Finds parts that did not reach the disk, without reading everything.
std::uint64_t sample_checksum(const RangeColumns& ranges) {
    constexpr std::size_t kStep = std::size_t{1} << 20;
    std::vector<std::uint64_t> sums;
    visit_range_columns(ranges, [&](auto column) {
        const auto bytes = std::as_bytes(column);
        for (std::size_t at = 0; at < bytes.size(); at += kStep)
            sums.push_back(checksum64(bytes.subspan(at, std::min(kAlignment, bytes.size() - at))));
    });
    return checksum_of(sums.data(), sums.size() * sizeof sums[0]);
}

/// Whether sites and parents exist: whatever the file contains, nothing is read outside the tables.
bool has_valid_references(const RangeColumns& ranges, std::size_t sites) {
    constexpr std::size_t kRows = std::size_t{1} << 20;
    std::atomic<bool> is_valid{true};
    parallel_for((ranges.size() + kRows - 1) / kRows, [&](std::size_t part) {
        const std::size_t first = part * kRows, end = std::min(ranges.size(), first + kRows);
        std::uint32_t largest = 0;
        bool are_before = true;
        for (std::size_t row = first; row < end; ++row) {
            largest = std::max(largest, ranges.site[row]);
            are_before &= ranges.parent[row] < row || ranges.parent[row] == kNoRow;
        }
        if (largest >= sites || !are_before) is_valid = false;
    });
    return is_valid;
}

/// Reads a file of the cache; null if it is not for `key` or damaged.
std::shared_ptr<const TraceData> read_cached(const std::string& file, const std::string& key) {
    const std::shared_ptr<const MappedFile> mapped = MappedFile::open(file);
    const std::span<const std::byte> bytes = mapped->bytes();
    Header header{};
    if (bytes.size() < kAlignment) return nullptr;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (std::memcmp(header.magic, kCacheMagic, sizeof kCacheMagic) != 0 ||
        header.checksum != checksum_of(header) || header.key != checksum_of(key) || header.rows >= kNoRow ||
        bytes.size() != kAlignment + range_bytes(header.rows) + header.others)
        return nullptr;
    RangeColumns ranges;
    std::size_t at = kAlignment;
    visit_range_columns(ranges, [&]<class T>(std::span<const T>& column) {
        column = {reinterpret_cast<const T*>(bytes.data() + at), header.rows};
        at += aligned(header.rows * sizeof(T));
    });
    std::shared_ptr<TraceData> data = unpack_other_tables(bytes.subspan(at), file);
    std::uint64_t rows = 0;
    for (const TrackInfo& track : data->tracks) rows += track.range_count;
    if (rows != header.rows || sample_checksum(ranges) != header.samples ||
        !has_valid_references(ranges, data->sites.size()))
        return nullptr;
    data->mapped_ranges = ranges;
    data->mapping = mapped;
    return data;
}

/// Removes files until at most `most` bytes are left, those that were not used for longest first.
void remove_oldest(const std::string& folder, std::uint64_t most) {
    struct Entry {
        fs::file_time_type used;
        std::uint64_t bytes;
        fs::path path;
    };
    std::vector<Entry> files;
    std::uint64_t all = 0;
    for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
        if (file.path().extension() != kSuffix) continue;
        files.push_back({file.last_write_time(), file.file_size(), file.path()});
        all += files.back().bytes;
    }
    std::ranges::sort(files, {}, &Entry::used);
    for (const Entry& file : files) {
        if (all <= most) return;
        fs::remove(file.path);
        all -= file.bytes;
    }
}

/// Thrown to leave a file unfinished.
struct Cancelled {};

void write_cached(const std::string& file, const std::string& key, const TraceData& data,
                  const std::vector<std::byte>& others, const std::atomic<bool>& is_cancelled) {
    OutputFile output(file, 0600);
    const auto write = [&](std::span<const std::byte> bytes) {
        for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), kPieceBytes))) {
            if (is_cancelled) throw Cancelled();
            const auto piece = bytes.first(std::min(bytes.size(), kPieceBytes));
            output.write({reinterpret_cast<const char*>(piece.data()), piece.size()});
        }
    };
    const std::vector<std::byte> padding(kAlignment);
    const auto write_aligned = [&](std::span<const std::byte> bytes) {
        write(bytes);
        write(std::span(padding).first(aligned(bytes.size()) - bytes.size()));
    };
    const RangeColumns ranges = data.ranges();
    Header header{};
    std::memcpy(header.magic, kCacheMagic, sizeof kCacheMagic);
    header.key = checksum_of(key);
    header.rows = ranges.size();
    header.others = others.size();
    header.samples = sample_checksum(ranges);
    header.checksum = checksum_of(header);
    write_aligned(std::as_bytes(std::span(&header, 1)));
    visit_range_columns(ranges, [&](auto column) { write_aligned(std::as_bytes(column)); });
    write(others);
    output.commit();
}

/// Makes room and writes the file. Failures are not reported: the cache only saves time.
void keep_trace(const std::string& key, const Trace& trace, const CacheLimits& limits,
                const std::atomic<bool>& is_cancelled) {
    const std::string file = cache_file(key);
    try {
        const std::vector<std::byte> others = pack_other_tables(trace.data());
        const std::uint64_t bytes = kAlignment + range_bytes(trace.ranges().size()) + others.size();
        const std::string folder = cache_folder();
        fs::create_directories(fs::path(folder).parent_path());
        ::mkdir(folder.c_str(), 0700);
        if (bytes > limits.most_bytes || fs::space(folder).available / 2 < bytes) return;
        fs::remove(file);
        remove_oldest(folder, limits.most_bytes - bytes);
        write_cached(file, key, trace.data(), others, is_cancelled);
    } catch (const std::exception&) {
    } catch (const Cancelled&) {
    }
}

}  // namespace

TraceCache::TraceCache(std::string path, std::string format, const CacheLimits& limits)
    : path_(std::move(path)), format_(std::move(format)), limits_(limits) {}

TraceCache::~TraceCache() {
    is_cancelled_ = true;
    wait();
}

void TraceCache::wait() {
    if (writer_.joinable()) writer_.join();
}

std::optional<Trace> TraceCache::find() {
    key_ = key_of(path_, format_);
    const std::string file = cache_file(key_);
    if (file.empty() || ::access(file.c_str(), R_OK) != 0) return std::nullopt;
    try {
        std::shared_ptr<const TraceData> data = read_cached(file, key_);
        if (data == nullptr) return std::nullopt;
        fs::last_write_time(file, fs::file_time_type::clock::now());  // it was used
        return Trace(std::move(data));
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

void TraceCache::keep(const Trace& trace) {
    if (trace.ranges().size() < limits_.least_ranges || !trace.window().finished) return;
    if (cache_file(key_).empty() || key_of(path_, format_) != key_) return;  // it has changed
    wait();
    writer_ = std::thread([key = key_, trace, this] { keep_trace(key, trace, limits_, is_cancelled_); });
}

}  // namespace marey
