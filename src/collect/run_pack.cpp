// run_pack.cpp: packs the captures of a run into one file, while it goes on and at its end.
#include <marey/error.h>
#include <marey/merge.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/compress.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "collect/capture_reader.h"
#include "collect/compact.h"
#include "collect/packed_capture.h"
#include "collect/run_file.h"
#include "record/spool.h"

namespace marey {
namespace {

bool has_records(const RawLog& log) {
    return !log.open.empty() || std::any_of(log.spans.begin(), log.spans.end(),
                                            [](const LogSpan& span) { return span.bytes != 0; });
}

/// Gives a capture that the file of the run will replace another name, as the recorder names captures.
std::string named_by_process(const std::string& capture) {
    std::int64_t pid = ::getpid();
    try {
        pid = capture_origin(capture).pid;
    } catch (const Error&) {  // not readable: any number will do
    }
    const std::string stem = insert_before_suffix(capture, "." + std::to_string(pid));
    std::string name = stem;
    for (int i = 2; ::link(capture.c_str(), name.c_str()) != 0; ++i) {
        if (errno != EEXIST) throw Error(name + ": " + std::strerror(errno));
        name = insert_before_suffix(stem, "." + std::to_string(i));
    }
    return name;
}

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

RunPacker::~RunPacker() {
    if (file_ < 0) return;
    if (result_.processes == 0) ::unlink(beside_.c_str());  // the disk was full: it contains nothing
    ::close(file_);
}

void RunPacker::append(const std::vector<std::byte>& bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t count =
            ::pwrite(file_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(length_ + done));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            const std::string cause = std::strerror(errno);
            if (::ftruncate(file_, static_cast<off_t>(length_)) != 0)
                errno = 0;  // readers skip what is not whole
            throw Error(beside_ + ": cannot write: " + cause);
        }
        done += static_cast<std::size_t>(count);
    }
    length_ += bytes.size();
}

void RunPacker::pack(const std::string& capture) {
    const RawLog log = read_capture(capture);
    if (log.is_running) throw Error(capture + ": its process is still running");
    if (has_records(log)) {
        const std::vector<std::byte> section =
            tree_section(log.pid, pack_checked(log, capture, PackFor::Speed));
        if (file_ < 0) {
            beside_ = insert_before_suffix(output_, ".packed");
            file_ = ::open(beside_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
            if (file_ < 0) {
                const std::string cause = std::strerror(errno);
                throw Error(std::exchange(beside_, "") + ": " + cause);
            }
            append(tree_header(capture_origin(capture).tree));
        }
        append(section);
        ++result_.processes;
    } else {
        ++result_.empty;
    }
    ::unlink(capture.c_str());
}

PackedTree RunPacker::finish(const std::vector<std::string>& captures,
                             const std::function<bool(const std::string&)>& is_running) {
    PackedTree result = result_;
    if (captures.empty()) return result;
    if (!can_compress()) throw Error(output_ + ": cannot be packed: this Marey was built without zstd");
    std::vector<std::string> packed;
    OutputFile file(output_, 0600);  // as the recorder creates captures
    const std::vector<std::byte> header = tree_header(capture_origin(captures.front()).tree);
    file.write(text_of(header));
    for (const std::string& path : captures) {
        try {
            const RawLog log = read_capture(path);
            if (log.is_running || (is_running && is_running(path))) {
                result.kept.push_back({path, "its process is still running"});
                continue;
            }
            if (path != captures.front() && !has_records(log)) {
                ++result.empty;
            } else {
                const std::vector<std::byte> bytes = pack_checked(log, path, PackFor::Speed);
                file.write(text_of(tree_section(log.pid, bytes)));
                ++result.processes;
            }
            packed.push_back(path);
        } catch (const Error& error) {
            result.kept.push_back({path, error.what()});
        }
    }
    if (length_ > header.size()) {
        const std::shared_ptr<const MappedFile> beside = MappedFile::open(beside_);
        file.write(text_of(beside->bytes().first(length_).subspan(header.size())));
    }
    if (result.processes == 0) return result;
    for (LeftOutFile& kept : result.kept) {
        if (kept.path == output_) kept.path = named_by_process(output_);
    }
    file.commit();
    if (!beside_.empty()) packed.push_back(beside_);
    for (const std::string& path : packed) {
        if (path != output_) ::unlink(path.c_str());
    }
    return result;
}

}  // namespace marey
