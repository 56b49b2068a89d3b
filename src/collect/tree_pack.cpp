// tree_pack.cpp: packs the captures of a run into one file.
#include <marey/error.h>
#include <marey/merge.h>

#include <unistd.h>

#include <algorithm>

#include "base/compress.h"
#include "base/output_file.h"
#include "collect/capture_reader.h"
#include "collect/compact.h"
#include "collect/packed_capture.h"
#include "collect/tree_file.h"

namespace marey {
namespace {

bool has_records(const RawLog& log) {
    return !log.open.empty() || std::any_of(log.spans.begin(), log.spans.end(),
                                            [](const LogSpan& span) { return span.bytes != 0; });
}

std::string_view text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

PackedTree pack_tree(const std::vector<std::string>& captures, const std::string& output) {
    PackedTree result;
    if (captures.empty()) return result;
    if (!can_compress()) throw Error(output + ": cannot be packed: this Marey was built without zstd");
    std::vector<std::string> packed;
    OutputFile file(output, 0600);  // as the recorder creates captures
    file.write(text_of(tree_header(capture_origin(captures.front()).tree)));
    for (const std::string& path : captures) {
        try {
            const RawLog log = read_capture(path);
            if (log.is_running) {
                result.kept.push_back({path, "its process is still running"});
                continue;
            }
            if (path != captures.front() && !has_records(log)) {
                ++result.empty;
                packed.push_back(path);
                continue;
            }
            const std::vector<std::byte> bytes = pack_checked(log, path);
            file.write(text_of(tree_section(log.pid, bytes)));
            ++result.processes;
            packed.push_back(path);
        } catch (const Error& error) {
            result.kept.push_back({path, error.what()});
        }
    }
    if (result.processes == 0) return result;
    file.commit();
    for (const std::string& path : packed) {
        if (path != output) ::unlink(path.c_str());
    }
    return result;
}

}  // namespace marey
