// spool.cpp: creates the capture file, appends to its streams, finishes it, and cuts captures out of it.
#include "record/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <marey/detail/counter.h>
#include <marey/error.h>
#include <marey/observe.h>

#include "base/small_file.h"
#include "record/clocks/clock.h"
#include "record/process_identity.h"

namespace marey {

using detail::BlockHeader;
using detail::FileHeader;
using detail::kBlockBytes;

namespace {

constexpr std::size_t kFirstExtent = std::size_t{1} << 20;
// A forked child is often short: two streams with a spare block, a thread and its first chunk.
constexpr std::size_t kFirstBlocksOfChild = 5;
constexpr int kMaxAttempts = 9999;  // to find a free name

std::size_t read_into(const char* path, char* place, std::size_t room) noexcept {
    return read_small_file(path, room).copy(place, room);
}

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
    throw Error(path + ": " + what + ": " + std::strerror(error));
}

// Gives the finished temporary file its name, unless that is taken (EEXIST).
int publish(const std::string& temporary, const std::string& path) noexcept {
#ifdef RENAME_NOREPLACE
    if (renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
#endif
    if (link(temporary.c_str(), path.c_str()) != 0) return errno;
    unlink(temporary.c_str());
    return 0;
}

std::string publish_unique(const std::string& temporary, const std::string& wanted) {
    for (int attempt = 0;; ++attempt) {
        std::string path = alternative_path(wanted, attempt);
        const int error = publish(temporary, path);
        if (error == 0) return path;
        if (error != EEXIST || attempt > kMaxAttempts) {
            unlink(temporary.c_str());
            fail(path, "cannot create the capture", error);
        }
    }
}

// Other processes may have the same pid: in other process namespaces, and on other hosts that share the
// folder.
std::string temporary_path(const std::string& wanted) {
    std::uint32_t number = 0;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)  // early in the boot
        number = static_cast<std::uint32_t>(Clock::now());
    return wanted + ".tmp." + std::to_string(getpid()) + "." + std::to_string(number);
}

int create_temporary(const std::string& temporary, const std::string& wanted) {
    struct stat named {};
    const bool is_folder = stat(wanted.c_str(), &named) == 0 && S_ISDIR(named.st_mode);
    if (is_folder || wanted.back() == '/') fail(wanted, "cannot create the capture", EISDIR);
    // For its owner alone: it will contain command lines and values.
    const int fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) fail(wanted, "cannot create the capture", errno);
    return fd;
}

void write_all(int fd, const void* data, std::size_t bytes, const std::string& path) {
    const char* at = static_cast<const char*>(data);
    const auto end = static_cast<std::size_t>(lseek(fd, 0, SEEK_CUR)) + bytes;
    if (const int error = check_file_limit(end)) fail(path, "cannot write the capture", error);
    while (bytes != 0) {
        const ssize_t written = write(fd, at, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) fail(path, "cannot write the capture", written < 0 ? errno : ENOSPC);
        at += written;
        bytes -= static_cast<std::size_t>(written);
    }
}

// How many bytes of whole stream records, from `records` on, fit into `room`.
std::size_t whole_records(std::span<const std::byte> records, std::size_t room) noexcept {
    std::size_t end = 0;
    while (end + sizeof(detail::StreamRecord) <= records.size()) {
        detail::StreamRecord head;
        std::memcpy(&head, records.data() + end, sizeof head);
        if (head.bytes < sizeof head || end + head.bytes > std::min(room, records.size())) break;
        end += head.bytes;
    }
    return end;
}

constexpr std::size_t kStreamRoom = kBlockBytes - sizeof(BlockHeader);  // in one block

// The first record of a journal if no block can hold it (an event message can be that large), else nothing.
// Names are never that long.
std::span<const std::byte> large_record(std::span<const std::byte> records, detail::BlockKind kind) noexcept {
    detail::StreamRecord head;
    if (kind != detail::BlockKind::Journal || records.size() < sizeof head) return {};
    std::memcpy(&head, records.data(), sizeof head);
    const bool is_large = head.bytes > kStreamRoom && head.bytes <= records.size();
    return records.first(is_large ? head.bytes : 0);
}

// A forked child neither reads nor writes again the facts that it shares with its parent. Its command line is
// another one if the program has written into its arguments, as programs do that set their title.
void read_process_facts(FileHeader& header) noexcept {
    const bool is_forked = std::exchange(header.pid, getpid()) != 0;
    gethostname(header.host, sizeof header.host - 1);
    if (!is_forked || std::string_view(program_invocation_name) != header.command_line) {
        std::memset(header.command_line, 0, sizeof header.command_line);
        header.command_line_bytes = static_cast<std::uint32_t>(
            read_into("/proc/self/cmdline", header.command_line, sizeof header.command_line - 1));
    }
    if (is_forked) return;
    std::memcpy(header.magic, detail::kFileMagic, sizeof header.magic);
    header.version = detail::kFormatVersion;
    header.byte_order = detail::kByteOrderMark;
    header.header_bytes = sizeof(FileHeader);
    header.block_bytes = kBlockBytes;
    header.node = -1;
    const std::size_t boot =
        read_into("/proc/sys/kernel/random/boot_id", header.boot_id, sizeof header.boot_id - 1);
    if (boot != 0 && header.boot_id[boot - 1] == '\n') header.boot_id[boot - 1] = '\0';
    const ssize_t exe = readlink("/proc/self/exe", header.executable, sizeof header.executable - 1);
    header.executable[exe < 0 ? 0 : exe] = '\0';
}

}  // namespace

namespace {
bool is_command_line_hidden MAREY_GUARDED_BY(recorder_mutex) = false;
}  // namespace

void hide_command_line() noexcept {
    is_command_line_hidden = true;
}

// Read once per process (a forked child is another process); tests may replace the clock.
void fill_file_header(FileHeader& header) noexcept {
    static FileHeader facts{};
    if (facts.pid != getpid()) read_process_facts(facts);
    header = facts;
    header.clock_source = static_cast<std::uint32_t>(Clock::source());
    header.ticks_per_second = Clock::ticks_per_second();
    header.node = node_id();
    if (is_command_line_hidden) {
        std::memset(header.command_line, 0, sizeof header.command_line);
        header.command_line_bytes = 0;
    }
    std::memcpy(header.tree, process_identity().record.tree, sizeof header.tree);
}

std::string insert_before_suffix(const std::string& path, const std::string& part) {
    const std::size_t slash = path.rfind('/');
    const std::size_t dot = path.rfind('.');
    const bool has_suffix =
        dot != std::string::npos && dot != 0 && (slash == std::string::npos || dot > slash + 1);
    return std::string(path).insert(has_suffix ? dot : path.size(), part);
}

std::string alternative_path(const std::string& wanted, int attempt) {
    if (attempt == 0) return wanted;
    std::string part = "." + std::to_string(getpid());
    if (attempt > 1) part += "." + std::to_string(attempt);
    return insert_before_suffix(wanted, part);
}

bool is_being_recorded(const std::string& path) noexcept {
    FileHeader header;
    const std::size_t bytes = read_into(path.c_str(), reinterpret_cast<char*>(&header), sizeof header);
    return bytes == sizeof header &&
           std::memcmp(header.magic, detail::kFileMagic, sizeof header.magic) == 0 && header.pid > 0 &&
           (kill(static_cast<pid_t>(header.pid), 0) == 0 || errno == EPERM);
}

std::string free_path(const std::string& wanted, std::span<const std::string> claimed) {
    const std::string temporary = temporary_path(wanted);
    close(create_temporary(temporary, wanted));
    unlink(temporary.c_str());
    for (int attempt = 0;; ++attempt) {
        std::string path = alternative_path(wanted, attempt);
        struct stat named {};
        const bool is_taken = lstat(path.c_str(), &named) == 0 ||
                              std::find(claimed.begin(), claimed.end(), path) != claimed.end();
        if (!is_taken || attempt > kMaxAttempts) return path;
    }
}

Spool::Spool(int fd, std::string path, FileHeader* header) noexcept
    : store_(fd, kBlockBytes), header_(header) {
    set_path(std::move(path));
}

void Spool::set_path(std::string path) {
    path_ = std::move(path);
    store_.file().set_path(path_);
}

std::shared_ptr<Spool> Spool::create(const std::string& requested_path) {
    const std::string temporary = temporary_path(requested_path);
    const int fd = avoid_standard_fds(create_temporary(temporary, requested_path));
    const std::size_t first = is_forked_process() ? kFirstBlocksOfChild * kBlockBytes : kFirstExtent;
    int error = check_file_limit(kBlockBytes + first);
    if (error == 0) error = posix_fallocate(fd, 0, static_cast<off_t>(kBlockBytes + first));
    void* header = MAP_FAILED;
    if (error == 0) header = mmap(nullptr, kBlockBytes + first, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (header == MAP_FAILED) {
        const int cause = error != 0 ? error : errno;
        close(fd);
        unlink(temporary.c_str());
        fail(requested_path, "cannot create the capture", cause);
    }
    // Without it, the first page that is written makes the kernel prepare all of a child's file.
    madvise(header, kBlockBytes + first, MADV_RANDOM);
    auto& file = *static_cast<FileHeader*>(header);
    fill_file_header(file);
    std::shared_ptr<Spool> spool(new Spool(fd, temporary, &file));
    file.map_at = detail::kBlockMapAt;
    file.map_bytes = kBlockBytes - detail::kBlockMapAt;
    spool->store_.set_map({static_cast<std::uint8_t*>(header) + file.map_at, file.map_bytes});
    BlockStore::Extent extent = spool->store_.reserve_small(first / kBlockBytes);
    extent.address = static_cast<std::byte*>(header) + kBlockBytes;
    spool->store_.add(extent);
    spool->journal_.spare = spool->take_block(detail::BlockKind::Free);
    spool->set_path(publish_unique(temporary, requested_path));
    return spool;
}

void Spool::set_node(std::int32_t node) noexcept {
    header_->node = node;
}

Spool::~Spool() {
    if (header_ != nullptr) munmap(header_, kBlockBytes);
    if (temporary_ && !finished_ && !abandoned_) unlink(path_.c_str());
}

void Spool::abandon() noexcept {
    abandoned_ = true;
    store_.abandon();
}

Block* Spool::take_block(detail::BlockKind kind) noexcept {
    Block* block = store_.take(1);
    if (block == nullptr) {
        BlockStore::Extent extent =
            store_.reserve(is_forked_process() ? detail::kLargeBlocks * kBlockBytes : kFirstExtent);
        if (store_.map_extent(extent) != 0) {
            store_.unreserve(extent);
            return nullptr;
        }
        store_.add(extent);
        block = store_.take(1);
    }
    if (block == nullptr) return nullptr;
    block->claims = 1;  // streams are never recycled
    block->header->sequence = next_stream_block_++;
    detail::store_release(block->header->kind, static_cast<std::uint16_t>(kind));
    return block;
}

std::byte* Spool::take_stacks_block(std::uint32_t number) noexcept {
    Block* const block = take_block(detail::BlockKind::Free);
    if (block == nullptr) return nullptr;
    constexpr std::size_t kBytes = detail::kStackNodes * sizeof(detail::StackNode);
    std::memset(block->data(), 0, kBytes);
    block->header->segment = number;
    detail::store_release(block->header->committed, std::uint64_t{kBytes});
    detail::store_release(block->header->kind, static_cast<std::uint16_t>(detail::BlockKind::Stacks));
    return block->data();
}

bool Spool::append(Stream& stream, std::span<const std::byte> records) noexcept {
    while (!records.empty()) {
        std::size_t used = 0;
        std::size_t fits = 0;
        if (stream.current != nullptr) {
            used = detail::load_relaxed(stream.current->header->committed);
            fits = whole_records(records, stream.current->capacity() - used);
        }
        if (fits == 0) {
            if (const auto large = large_record(records, stream.kind); !large.empty()) {
                if (!append_large(stream, large)) return false;
                records = records.subspan(large.size());
                continue;
            }
            if (whole_records(records, kStreamRoom) == 0) return false;
            Block* block = take_block(stream.kind);
            if (block == nullptr && stream.spare != nullptr) {
                block = std::exchange(stream.spare, nullptr);
                block->header->sequence = next_stream_block_++;
                detail::store_release(block->header->kind, static_cast<std::uint16_t>(stream.kind));
            }
            if (block == nullptr) return false;
            stream.current = block;
            continue;
        }
        std::memcpy(stream.current->data() + used, records.data(), fits);
        detail::store_release(stream.current->header->committed, std::uint64_t{used + fits});
        records = records.subspan(fits);
    }
    return true;
}

std::uint64_t* Spool::append_losses(const detail::LossesRecord& losses) noexcept {
    if (!append_journal(std::as_bytes(std::span(&losses, 1)))) return nullptr;
    const Block& block = *journal_.current;
    std::byte* const end = block.data() + detail::load_relaxed(block.header->committed);
    return reinterpret_cast<std::uint64_t*>(end - sizeof losses +
                                            offsetof(detail::LossesRecord, overwritten_chunks));
}

// All of its blocks or none: nothing could be read after half a record. They become part of the stream in
// order; a process that is killed in between leaves a stream that ends early.
bool Spool::append_large(Stream& stream, std::span<const std::byte> record) noexcept {
    std::vector<Block*> blocks;
    for (std::size_t bytes = 0; bytes < record.size(); bytes += kStreamRoom) {
        Block* const block = take_block(detail::BlockKind::Free);
        if (block == nullptr) {
            for (Block* taken : blocks) {
                taken->claims = 0;
                store_.free_block(taken);
            }
            return false;
        }
        blocks.push_back(block);
    }
    for (Block* block : blocks) {
        const auto part = record.first(std::min(record.size(), kStreamRoom));
        std::memcpy(block->data(), part.data(), part.size());
        detail::store_release(block->header->committed, std::uint64_t{part.size()});
        block->header->sequence = next_stream_block_++;
        detail::store_release(block->header->kind, static_cast<std::uint16_t>(stream.kind));
        record = record.subspan(part.size());
    }
    stream.current = blocks.back();
    return true;
}

void Spool::finish() noexcept {
    if (journal_.spare != nullptr) store_.free_block(std::exchange(journal_.spare, nullptr));
    finished_ = true;
    store_.trim();
    store_.freeze();
    header_->blocks = static_cast<std::uint32_t>(store_.used_file_bytes() / kBlockBytes);
    detail::store_release(header_->finished, 1u);
    if (temporary_ && is_in_place()) unlink(path_.c_str());  // threads that still use it keep it mapped
}

bool Spool::is_in_place() const noexcept {
    return store_.file().is_at(path_);
}

bool Spool::has_name() noexcept {
    return store_.file().has_name();
}

void Spool::move_aside() noexcept {
    const std::string aside = path_ + ".spool";
    if (rename(path_.c_str(), aside.c_str()) != 0) return;
    set_path(aside);
    temporary_ = true;
}

void Spool::move_back(const std::string& path) noexcept {
    if (!temporary_ || publish(path_, path) != 0) return;
    set_path(path);
    temporary_ = false;
}

void write_capture(FileHeader file, std::span<const std::byte> names, std::span<const std::byte> journal,
                   std::span<const LogSpan> spans, const WriteBytes& write) {
    file.finished = 1;
    static constexpr std::byte kZeros[kBlockBytes] = {};
    const auto write_padded = [&](const auto& header, std::span<const std::byte> records) {
        write(std::as_bytes(std::span(&header, 1)));
        write(records);
        write(std::span(kZeros).first((0 - sizeof header - records.size()) % kBlockBytes));
    };
    write_padded(file, {});
    std::uint64_t sequence = 1;
    BlockHeader header;
    header.magic = detail::kBlockMagic;
    header.generation = 1;
    const auto write_stream = [&](detail::BlockKind kind, std::span<const std::byte> records) {
        std::size_t of_large = 0;  // the rest of a record that spans several blocks
        while (!records.empty()) {
            if (of_large == 0) of_large = large_record(records, kind).size();
            const std::size_t bytes =
                of_large != 0 ? std::min(of_large, kStreamRoom) : whole_records(records, kStreamRoom);
            if (bytes == 0) break;
            of_large -= std::min(of_large, bytes);
            header.kind = static_cast<std::uint16_t>(kind);
            header.blocks = 1;
            header.sequence = sequence++;
            header.committed = bytes;
            write_padded(header, records.first(bytes));
            records = records.subspan(bytes);
        }
    };
    write_stream(detail::BlockKind::Names, names);
    write_stream(detail::BlockKind::Journal, journal);
    header.kind = static_cast<std::uint16_t>(detail::BlockKind::Log);
    for (const LogSpan& span : spans) {
        header.blocks =
            static_cast<std::uint16_t>((sizeof header + span.bytes + kBlockBytes - 1) / kBlockBytes);
        header.thread = span.thread;
        header.sequence = span.sequence;
        header.base_ticks = span.base_ticks;
        header.pair = span.pair;
        header.committed = span.bytes;
        write_padded(header, {span.data, span.bytes});
    }
}

std::string write_cut(const std::string& requested_path, std::span<const std::byte> names,
                      std::span<const std::byte> journal, std::span<const LogSpan> spans) {
    const std::string temporary = temporary_path(requested_path);
    const int fd = create_temporary(temporary, requested_path);
    try {
        FileHeader file;
        fill_file_header(file);
        write_capture(file, names, journal, spans, [&](std::span<const std::byte> bytes) {
            write_all(fd, bytes.data(), bytes.size(), requested_path);
        });
        file.finished = 1;
        file.blocks = static_cast<std::uint32_t>(lseek(fd, 0, SEEK_CUR) / static_cast<off_t>(kBlockBytes));
        if (lseek(fd, 0, SEEK_SET) == 0) write_all(fd, &file, sizeof file, requested_path);
    } catch (...) {
        close(fd);
        unlink(temporary.c_str());
        throw;
    }
    close(fd);
    return publish_unique(temporary, requested_path);
}

}  // namespace marey
