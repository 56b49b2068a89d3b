// session.cpp: kymo::Session over the recorder and the trace builder.
#include <kymo/session.h>

#include <utility>

#include <kymo/error.h>

#include "collect/trace_builder.h"
#include "record/recorder.h"

namespace kymo {

Session::~Session() {
    discard();
}

Session::Session(Session&& other) noexcept
    : id_(std::exchange(other.id_, 0)),
      output_path_(std::move(other.output_path_)),
      trace_(std::exchange(other.trace_, Trace())) {}

Session& Session::operator=(Session&& other) noexcept {
    if (this != &other) {
        discard();
        id_ = std::exchange(other.id_, 0);
        output_path_ = std::move(other.output_path_);
        trace_ = std::exchange(other.trace_, Trace());
    }
    return *this;
}

void Session::start(const SessionOptions& options) {
    if (is_running()) throw Error("this session is running already");
    trace_ = Trace();
    Recorder::Started started = Recorder::get().start(options);
    id_ = started.id;
    output_path_ = std::move(started.output_path);
}

Trace Session::stop() {
    if (id_ == 0) return trace_;
    RawLog log;
    const std::uint64_t id = std::exchange(id_, 0);
    if (Recorder::get().stop(id, log)) trace_ = build_trace(log, {.session = id});
    return trace_;
}

Trace Session::snapshot() const {
    RawLog log;
    if (id_ == 0 || !Recorder::get().snapshot(id_, log)) return trace_;
    return build_trace(log, {.session = id_});
}

void Session::discard() noexcept {
    if (id_ != 0) Recorder::get().discard(std::exchange(id_, 0));
}

bool Session::is_running() const noexcept {
    return id_ != 0 && Recorder::get().is_running(id_);
}

}  // namespace kymo
