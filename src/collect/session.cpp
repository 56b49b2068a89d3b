// session.cpp: marey::Session over the recorder and the trace builder.
#include <marey/session.h>

#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <marey/error.h>

#include "base/output_file.h"
#include "collect/live/snapshot.h"
#include "collect/log_records.h"
#include "collect/remote_events.h"
#include "collect/trace_builder.h"
#include "json/json_scanner.h"
#include "record/clocks/clock.h"
#include "record/process_identity.h"
#include "record/recorder.h"
#include "record/spool.h"

namespace marey {

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
    if (is_running()) throw Error("this session is already running");
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

void Session::snapshot_to(const std::string& path, const std::string& reason) const {
    RawLog log;
    if (id_ == 0 || !Recorder::get().snapshot(id_, log)) throw Error("this session is not running");
    finish_snapshot(log, {.text = reason});
    for (OpenRange& range : log.open) {
        const detail::OpenAtStopRecord record = open_at_stop(id_, range);
        append_stream_record(log.journal, detail::JournalKind::OpenAtStop, record,
                             {reinterpret_cast<const char*>(range.payload.data()), range.payload.size()});
    }
    detail::SessionStopRecord stop{};
    stop.session = id_;
    stop.ticks = log.end_ticks;
    append_stream_record(log.journal, detail::JournalKind::SessionStop, stop, {});
    detail::FileHeader header;
    {
        const ScopedLock lock(recorder_mutex);
        fill_file_header(header);
    }
    std::memset(header.tree, 0, sizeof header.tree);
    // Not packed: that takes several times as long, and the program waits.
    OutputFile file(path, 0600);
    write_capture(header, log.names, log.journal, log.spans, [&file](std::span<const std::byte> bytes) {
        file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    });
    file.commit();
}

void Session::record_devices(bool is_wanted) {
    Recorder::get().record_devices(id_, is_wanted);
}

void Session::discard() noexcept {
    if (id_ != 0) Recorder::get().discard(std::exchange(id_, 0));
}

bool Session::is_running() const noexcept {
    return id_ != 0 && Recorder::get().sessions().is_running(id_);
}

void Session::add_events(std::string_view message, const RemoteOptions& options) {
    constexpr std::size_t kMaxBytes = std::size_t{256} << 20;  // the journal counts a record in 32 bits
    constexpr std::size_t kMaxPrefixBytes = 1024;
    if (!is_running()) throw Error("events cannot be added to a session that is not running");
    if (message.size() > kMaxBytes)
        throw Error("event message: " + std::to_string(message.size()) +
                    " bytes exceed the limit of 256 MiB for one message");
    if (options.prefix.size() > kMaxPrefixBytes)
        throw Error("event message: the prefix is longer than 1024 bytes");
    const Trace checked = unpack_events(message);
    detail::RemoteEventsRecord record{};
    const StringId clock = checked.processes().empty() ? 0 : checked.processes()[0].clock;
    if (clock != 0 && checked.string(clock) == own_clock()) record.head.reserved = kRemoteClockIsOurs;
    record.call_end = Clock::now();
    if (options.call != nullptr) {
        record.call_start = options.call->start_;
        if (options.call->end_ != 0) record.call_end = options.call->end_;
        record.thread = options.call->thread_;
    }
    record.node = options.node;
    Recorder::get().sessions().add_remote_events(id_, record, options.prefix,
                                                 std::as_bytes(std::span(message)));
}

void Session::add_metadata(std::string_view key, std::string_view json) {
    constexpr std::size_t kMaxBytes = std::size_t{128} << 10;
    if (json.size() > kMaxBytes)
        throw Error("metadata of '" + std::string(key) + "': " + std::to_string(json.size()) +
                    " bytes exceed the limit of 128 KiB");
    if (!is_json(json)) throw Error("metadata of '" + std::string(key) + "': the value is not JSON");
    Recorder::get().sessions().add_metadata(id_, key, std::as_bytes(std::span(json)));
}

}  // namespace marey
