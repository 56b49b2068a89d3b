// event_message_writer.cpp: pack_events: an EventMessage as bytes.
#include <bit>
#include <cstring>
#include <span>
#include <unordered_map>

#include <marey/error.h>
#include <marey/remote.h>

#include "base/checksum.h"
#include "collect/event_message.h"
#include "collect/event_message_check.h"

namespace marey {

using namespace event_message;

namespace {

/// Appends fields to a string.
class FieldWriter {
  public:
    explicit FieldWriter(std::string& out) : out_(out) {}

    template <class Tag>
    void number(Tag tag, std::uint64_t value) {
        key(tag, FieldType::Number);
        raw_number(value);
    }
    template <class Tag>
    void signed_number(Tag tag, std::int64_t value) {
        key(tag, FieldType::Signed);
        raw_signed(value);
    }
    template <class Tag>
    void real(Tag tag, double value) {
        key(tag, FieldType::Real);
        const auto bits = std::bit_cast<std::uint64_t>(value);
        for (int i = 0; i < 8; ++i) out_ += static_cast<char>(bits >> (8 * i));
    }
    template <class Tag>
    void bytes(Tag tag, FieldType type, std::string_view content) {
        key(tag, type);
        raw_number(content.size());
        out_ += content;
    }
    // Fields that a reader takes as 0 when they are missing.
    template <class Tag>
    void number_if_nonzero(Tag tag, std::uint64_t value) {
        if (value != 0) number(tag, value);
    }
    template <class Tag>
    void signed_if_nonzero(Tag tag, std::int64_t value) {
        if (value != 0) signed_number(tag, value);
    }
    void raw_signed(std::int64_t value) {
        raw_number(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
    }

  private:
    template <class Tag>
    void key(Tag tag, FieldType type) {
        raw_number(std::uint64_t{static_cast<std::uint32_t>(tag)} << 3 | static_cast<std::uint64_t>(type));
    }
    void raw_number(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
        out_ += static_cast<char>(value);
    }
    std::string& out_;
};

template <class T>
void append_little_endian(std::string& out, T value) {
    for (std::size_t i = 0; i < sizeof value; ++i)
        out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
}

class MessageWriter {
  public:
    explicit MessageWriter(const EventMessage& message) : message_(message) {}

    std::string write() {
        FieldWriter fields(body_);
        if (!message_.boot_id.empty()) fields.bytes(MessageField::BootId, FieldType::Text, message_.boot_id);
        fields.signed_number(MessageField::Start, message_.start_ns);
        fields.signed_number(MessageField::End, message_.end_ns - message_.start_ns);
        for (const RemoteProcess& process : message_.processes) write_process(process);
        for (const RemoteThread& thread : message_.threads) write_thread(thread);
        for (const RemoteEvent& event : message_.events) write_event(event);
        std::string whole(kMagic, sizeof kMagic);
        append_little_endian(whole, kVersion);
        append_little_endian(whole, std::uint16_t{0});
        append_little_endian(whole, std::uint32_t{0});
        append_little_endian(whole, std::uint64_t{kHeaderBytes + body_.size() + kChecksumBytes});
        whole += body_;
        append_little_endian(whole, checksum64(std::as_bytes(std::span(whole))));
        return whole;
    }

  private:
    // Written at first use; each text once.
    std::uint32_t number_of(StringId id) {
        const std::string& text = message_.strings[id];
        if (text.empty()) return 0;
        const auto [place, is_new] = numbers_.try_emplace(text, numbers_.size() + 1);
        if (is_new) FieldWriter(body_).bytes(MessageField::String, FieldType::Text, text);
        return static_cast<std::uint32_t>(place->second);
    }

    void write_process(const RemoteProcess& process) {
        std::string content;
        FieldWriter fields(content);
        fields.signed_if_nonzero(ProcessField::Pid, process.pid);
        if (process.node != -1) fields.signed_number(ProcessField::Node, process.node);
        if (!process.host.empty()) fields.bytes(ProcessField::Host, FieldType::Text, process.host);
        if (!process.name.empty()) fields.bytes(ProcessField::Name, FieldType::Text, process.name);
        FieldWriter(body_).bytes(MessageField::Process, FieldType::Fields, content);
    }

    void write_thread(const RemoteThread& thread) {
        std::string content;
        FieldWriter fields(content);
        fields.number_if_nonzero(ThreadField::Process, thread.process);
        fields.number(ThreadField::Id, thread.id);
        fields.signed_if_nonzero(ThreadField::OsTid, thread.os_tid);
        fields.number_if_nonzero(ThreadField::Name, number_of(thread.name));
        FieldWriter(body_).bytes(MessageField::Thread, FieldType::Fields, content);
    }

    void write_event(const RemoteEvent& event) {
        std::string content;
        FieldWriter fields(content);
        fields.number(EventField::Name, number_of(event.name));
        fields.number(EventField::Thread, event.thread);
        fields.signed_number(EventField::Start, event.start_ns - last_start_ns());
        last_ = &event;
        if (event.kind == RemoteEvent::Kind::Range)
            fields.number_if_nonzero(EventField::Duration,
                                     static_cast<std::uint64_t>(event.end_ns - event.start_ns));
        else
            fields.number(EventField::Kind, static_cast<std::uint64_t>(event.kind));
        if (event.scope != Scope::User)
            fields.number(EventField::Scope, static_cast<std::uint64_t>(event.scope));
        fields.number_if_nonzero(EventField::Process, event.process);
        fields.number_if_nonzero(EventField::Flags, (event.is_async ? kFlagAsync : 0u) |
                                                        (event.is_unfinished ? kFlagUnfinished : 0u) |
                                                        (event.is_refused ? kFlagRefused : 0u));
        fields.number_if_nonzero(EventField::Id, event.id);
        fields.number_if_nonzero(EventField::Caller, static_cast<std::uint64_t>(event.caller + 1));
        if (event.sequence >= 0)
            fields.number(EventField::Sequence, static_cast<std::uint64_t>(event.sequence));
        fields.number_if_nonzero(EventField::ForwardThread, event.forward_thread);
        if (!(event.device == Device())) {
            fields.number(EventField::DeviceType, static_cast<std::uint64_t>(event.device.type));
            fields.signed_number(EventField::DeviceIndex, event.device.index);
        }
        if (event.device_ns >= 0)
            fields.number(EventField::DeviceTime, static_cast<std::uint64_t>(event.device_ns));
        fields.signed_if_nonzero(EventField::CpuMemory, event.cpu_memory_bytes);
        fields.signed_if_nonzero(EventField::DeviceMemory, event.device_memory_bytes);
        fields.number_if_nonzero(EventField::Address, event.address);
        fields.signed_if_nonzero(EventField::TotalAllocated, event.total_allocated);
        fields.signed_if_nonzero(EventField::TotalReserved, event.total_reserved);
        for (const std::vector<std::int64_t>& shape : event.shapes) {
            write_list(fields, EventField::Shape, shape, [](std::int64_t extent) { return extent; });
        }
        if (!event.stack.empty()) {
            write_list(fields, EventField::Stack, event.stack,
                       [this](StringId frame) { return std::int64_t{number_of(frame)}; });
        }
        for (const RemoteValue& value : event.values) write_value(fields, value);
        FieldWriter(body_).bytes(MessageField::Event, FieldType::Fields, content);
    }

    template <class Items, class Convert>
    static void write_list(FieldWriter& fields, EventField tag, const Items& items, Convert convert) {
        std::string content;
        FieldWriter numbers(content);
        for (const auto& item : items) numbers.raw_signed(convert(item));
        fields.bytes(tag, FieldType::List, content);
    }

    void write_value(FieldWriter& event, const RemoteValue& value) {
        std::string content;
        FieldWriter fields(content);
        fields.number(ValueField::Key, number_of(value.key));
        if (const auto* const boolean = std::get_if<bool>(&value.value)) {
            fields.number(ValueField::Boolean, *boolean ? 1 : 0);
        } else if (const auto* const integer = std::get_if<std::int64_t>(&value.value)) {
            fields.signed_number(ValueField::Integer, *integer);
        } else if (const auto* const real = std::get_if<double>(&value.value)) {
            fields.real(ValueField::Real, *real);
        } else {
            fields.number(ValueField::String, number_of(std::get<StringId>(value.value)));
        }
        event.bytes(EventField::Value, FieldType::Fields, content);
    }

    std::int64_t last_start_ns() const { return last_ == nullptr ? message_.start_ns : last_->start_ns; }

    const EventMessage& message_;
    const RemoteEvent* last_ = nullptr;
    std::string body_;
    std::unordered_map<std::string_view, std::size_t> numbers_;
};

}  // namespace

std::string pack_events(const EventMessage& message) {
    check_message(message);
    return MessageWriter(message).write();
}

}  // namespace marey
