// compact.cpp: packs a capture, verifies it, and replaces the target.
#include "collect/compact.h"

#include <algorithm>
#include <cstring>

#include <marey/error.h>

#include "base/compress.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "collect/capture_reader.h"
#include "collect/run_file.h"
#include "trace/saved_trace.h"

namespace marey {
namespace {

std::vector<LogSpan> by_sequence(const RawLog& log) {
    std::vector<LogSpan> spans = log.spans;
    std::stable_sort(spans.begin(), spans.end(),
                     [](const LogSpan& a, const LogSpan& b) { return a.sequence < b.sequence; });
    return spans;
}

bool is_same_span(const LogSpan& a, const LogSpan& b) {
    return a.bytes == b.bytes && a.thread == b.thread && a.sequence == b.sequence &&
           a.base_ticks == b.base_ticks && std::memcmp(&a.pair, &b.pair, sizeof a.pair) == 0 &&
           (a.bytes == 0 || std::memcmp(a.data, b.data, a.bytes) == 0);
}

}  // namespace

bool is_same_log(const RawLog& a, const RawLog& b) {
    const auto same_open = [](const OpenRange& x, const OpenRange& y) {
        return x.thread == y.thread && x.depth == y.depth && x.start == y.start && x.site == y.site &&
               x.flags == y.flags && x.payload == y.payload;
    };
    const auto same_problem = [](const RawProblem& x, const RawProblem& y) {
        return x.code == y.code && x.text == y.text && x.count == y.count;
    };
    const std::vector<LogSpan> spans_a = by_sequence(a);
    const std::vector<LogSpan> spans_b = by_sequence(b);
    return a.pid == b.pid && a.node == b.node && a.host == b.host && a.executable == b.executable &&
           a.command_line == b.command_line && a.clock_source == b.clock_source &&
           a.ticks_per_second == b.ticks_per_second && a.end_ticks == b.end_ticks &&
           a.finished == b.finished && a.names == b.names && a.journal == b.journal &&
           std::equal(a.open.begin(), a.open.end(), b.open.begin(), b.open.end(), same_open) &&
           std::equal(a.problems.begin(), a.problems.end(), b.problems.begin(), b.problems.end(),
                      same_problem) &&
           std::equal(spans_a.begin(), spans_a.end(), spans_b.begin(), spans_b.end(), is_same_span);
}

std::vector<std::byte> pack_checked(const RawLog& log, const std::string& path, PackFor purpose) {
    if (!can_compress()) throw Error(path + ": cannot be packed: this Marey was built without zstd");
    std::vector<std::byte> packed = pack_capture(log, purpose);
    if (!is_same_log(log, unpack_capture(packed, path)))
        throw Error(path + ": not written: the packed capture differs from the original");
    return packed;
}

void write_packed(const RawLog& log, const std::string& path, PackFor purpose) {
    const std::vector<std::byte> packed =
        purpose == PackFor::Speed && can_compress() ? pack_capture(log, purpose) : pack_checked(log, path);
    OutputFile file(path, 0600);  // as the recorder creates captures
    file.write({reinterpret_cast<const char*>(packed.data()), packed.size()});
    file.commit();
}

void compact_capture(const std::string& in, const std::string& out) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(in);
    if (is_run_file(file->bytes()))
        throw Error(in + ": is packed already (it contains all processes of a run)");
    if (is_saved_trace(file->bytes())) {  // has no records; it is already as small as possible
        Trace(unpack_trace(file->bytes(), in)).save(out);
    } else {
        write_packed(read_capture(file, in), out);
    }
}

}  // namespace marey
