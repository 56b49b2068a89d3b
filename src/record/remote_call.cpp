// remote_call.cpp: data added to a session from outside: the time of a call to another process, the events
// that it returned, and facts.
#include <new>
#include <string>

#include <marey/error.h>
#include <marey/range.h>
#include <marey/remote.h>

#include "record/clock.h"
#include "record/devices.h"
#include "record/journal.h"
#include "record/recorder.h"
#include "record/thread_log.h"

namespace marey {

RemoteCall::RemoteCall() noexcept {
    if (is_recording()) {
        const SlowPath path;
        const detail::ThreadState* const state = path ? ready_thread() : nullptr;
        if (state != nullptr) thread_ = static_cast<const ThreadEntry*>(state->owner)->id;
    }
    start_ = Clock::now();
}

void RemoteCall::end() noexcept {
    if (end_ == 0) end_ = Clock::now();
}

detail::FileHeader Recorder::process_facts() noexcept {
    std::lock_guard lock(mutex_);
    detail::FileHeader facts;
    fill_file_header(facts);
    return facts;
}

void Recorder::add_remote_events(std::uint64_t id, detail::RemoteEventsRecord record, std::string_view prefix,
                                 std::span<const std::byte> message) {
    std::lock_guard lock(mutex_);
    SessionEntry* const session = find(id);
    if (session == nullptr || session->is_closed)
        throw Error("events cannot be added to a session that is not running");
    // A message is never dropped in part: it is refused if it does not fit, while its owner can still react.
    if (message.size() > session->max_bytes - std::min(session->max_bytes, session->remote_bytes))
        throw Error("events cannot be added: " + std::to_string(message.size()) +
                    " more bytes would exceed the session's max_bytes");
    record.session = id;
    record.prefix = names_.intern(prefix);
    record.message_bytes = static_cast<std::uint32_t>(message.size());
    publish_names();
    journal(detail::JournalKind::RemoteEvents, record, message);
    session->remote_bytes += message.size();
}

void Recorder::add_metadata(std::uint64_t id, std::string_view key, std::span<const std::byte> json) {
    std::lock_guard lock(mutex_);
    const SessionEntry* const session = find(id);
    if (session == nullptr || session->is_closed)
        throw Error("metadata cannot be added to a session that is not running");
    journal_fact(id, key, json);
}

void Recorder::add_device_fact(DeviceType type, std::string_view key, std::string_view json) noexcept {
    std::lock_guard lock(mutex_);
    try {
        for (const auto& session : sessions_) {
            if (session->is_closed || (session->device_types & device_bit(type)) == 0) continue;
            std::string& known_json = session->device_facts[std::string(key)];
            if (known_json == json) continue;
            known_json = json;
            journal_fact(session->id, key, std::as_bytes(std::span(json)));
        }
    } catch (const std::bad_alloc&) {  // continue without it
    }
}

void Recorder::journal_fact(std::uint64_t session, std::string_view key, std::span<const std::byte> json) {
    detail::MetadataRecord record{};
    record.session = session;
    record.key = names_.intern(key);
    record.json_bytes = static_cast<std::uint32_t>(json.size());
    publish_names();
    journal(detail::JournalKind::Metadata, record, json);
}

}  // namespace marey
