// load.cpp: Trace::load: a capture file, read and built.
#include <kymo/error.h>
#include <kymo/trace.h>

#include "collect/capture_reader.h"
#include "collect/trace_builder.h"

namespace kymo {

Trace Trace::load(const std::string& path) {
    return build_trace(read_capture(path));
}

Trace Trace::load(const std::string& path, std::uint64_t session_id) {
    const RawLog log = read_capture(path);
    for (const SessionMarks& session : list_sessions(log)) {
        if (session.id == session_id) {
            ViewRequest request;
            request.session = session_id;
            return build_trace(log, request);
        }
    }
    throw Error(path + ": holds no session " + std::to_string(session_id));
}

}  // namespace kymo
