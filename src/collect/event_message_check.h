// event_message_check.h: checks that an event message is consistent, whoever made it.
#pragma once

#include <string>

#include <marey/error.h>
#include <marey/remote.h>

#include "collect/event_message.h"

namespace marey {

[[noreturn]] inline void reject_message(const std::string& why) {
    throw Error("event message: " + why);
}

/// Throws marey::Error naming the inconsistency. A message that passes has only valid indexes, known kinds,
/// and times whose differences do not overflow.
inline void check_message(const EventMessage& message) {
    const auto require = [](bool holds, const char* why) {
        if (!holds) reject_message(why);
    };
    const auto is_time = [](std::int64_t ns) {
        return ns >= -event_message::kLatestNs && ns <= event_message::kLatestNs;
    };
    const auto is_string = [&](StringId id) { return id < message.strings.size(); };
    require(!message.strings.empty() && message.strings[0].empty(), "string 0 is not empty");
    require(!message.processes.empty(), "it has no process");
    require(is_time(message.start_ns) && is_time(message.end_ns) && message.start_ns <= message.end_ns,
            "its time range is invalid");
    for (const RemoteThread& thread : message.threads) {
        require(thread.process < message.processes.size(), "a thread refers to a missing process");
        require(is_string(thread.name), "a thread's name refers to a missing string");
    }
    for (std::size_t i = 0; i < message.events.size(); ++i) {
        const RemoteEvent& event = message.events[i];
        require(event.kind <= RemoteEvent::Kind::Memory, "an event has an unknown kind");
        require(static_cast<unsigned>(event.scope) < 32, "an event has an invalid scope");
        require(is_string(event.name), "an event's name refers to a missing string");
        require(event.process < message.processes.size(), "an event refers to a missing process");
        require(is_time(event.start_ns), "an event's time is out of range");
        if (event.kind == RemoteEvent::Kind::Range) {
            require(is_time(event.end_ns) && event.start_ns <= event.end_ns, "a range ends before it starts");
        }
        require(event.caller >= -1 && event.caller < static_cast<std::int64_t>(message.events.size()) &&
                    event.caller != static_cast<std::int64_t>(i),
                "an event refers to a missing caller");
        require(event.sequence >= -1, "an event's sequence number is negative");
        require(event.device_ns >= -1, "an event's device time is negative");
        for (const StringId frame : event.stack) {
            require(is_string(frame), "a stack frame refers to a missing string");
        }
        for (const RemoteValue& value : event.values) {
            const auto* const text = std::get_if<StringId>(&value.value);
            require(is_string(value.key) && (text == nullptr || is_string(*text)),
                    "a value refers to a missing string");
        }
    }
}

}  // namespace marey
