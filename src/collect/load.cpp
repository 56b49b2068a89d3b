// load.cpp: Trace::load: reads and builds a capture file, or reads a saved trace.
#include <marey/error.h>
#include <marey/load.h>
#include <marey/merge.h>
#include <marey/trace.h>

#include "base/mapped_file.h"
#include "collect/capture_reader.h"
#include "collect/run_file.h"
#include "collect/trace_builder.h"
#include "trace/saved_trace.h"

namespace marey {

Trace Trace::load(const std::string& path) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    if (is_run_file(file->bytes())) return load_merged({path}).trace;
    if (is_saved_trace(file->bytes())) return Trace(unpack_trace(file->bytes(), path));
    return build_trace(read_capture(file, path));
}

Trace load_trace(const std::string& path, LoadProgress& progress) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    if (is_run_file(file->bytes())) return load_merged({path}).trace;
    if (is_saved_trace(file->bytes())) return Trace(unpack_trace(file->bytes(), path));
    return build_trace(read_capture(file, path), {.progress = &progress});
}

Trace Trace::load_for_averages(const std::string& path) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    if (is_run_file(file->bytes())) return load_merged({path}, {.for_averages = true}).trace;
    if (is_saved_trace(file->bytes())) return Trace(unpack_trace(file->bytes(), path));
    return build_trace(read_capture(file, path), {.part_details = false});
}

Trace Trace::load(const std::string& path, std::uint64_t session_id) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    if (is_run_file(file->bytes())) return load_merged({path}, {.session = session_id}).trace;
    if (is_saved_trace(file->bytes())) {
        if (unpack_window(file->bytes(), path).session_id == session_id)
            return Trace(unpack_trace(file->bytes(), path));
        throw Error(path + ": has no session " + std::to_string(session_id));
    }
    const RawLog log = read_capture(file, path);
    for (const SessionMarks& session : list_sessions(log)) {
        if (session.id == session_id) {
            ViewRequest request;
            request.session = session_id;
            return build_trace(log, request);
        }
    }
    throw Error(path + ": has no session " + std::to_string(session_id));
}

}  // namespace marey
