// event_message_reader.cpp: unpack_events: decodes untrusted bytes as an EventMessage, or gives the reason
// why not.
#include <bit>
#include <cstring>
#include <limits>
#include <span>

#include <marey/error.h>
#include <marey/remote.h>

#include "base/checksum.h"
#include "collect/event_message.h"
#include "collect/event_message_check.h"

namespace marey {

using namespace event_message;

namespace {

const char* type_name(FieldType type) {
    constexpr const char* kNames[] = {"a number", "a signed number", "a real number",
                                      "a text",   "fields",          "a list"};
    return kNames[static_cast<std::size_t>(type)];
}

template <class T>
T little_endian_at(std::string_view bytes, std::size_t at) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
        value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    return static_cast<T>(value);
}

std::uint64_t take_number(std::string_view& rest) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (rest.empty()) reject_message("a number is truncated");
        const auto byte = static_cast<unsigned char>(rest.front());
        rest.remove_prefix(1);
        if (shift == 63 && byte > 1) break;
        value |= std::uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return value;
    }
    reject_message("a number has more than 64 bits");
}

std::int64_t unzigzag(std::uint64_t value) {
    return static_cast<std::int64_t>(value >> 1 ^ (0 - (value & 1)));
}

/// Walks fields. Each getter reads the current one and rejects it if its type differs.
class FieldReader {
  public:
    FieldReader(std::string_view fields, const char* what) : rest_(fields), what_(what) {}

    bool next() {
        if (rest_.empty()) return false;
        const std::uint64_t key = take_number(rest_);
        tag_ = key >> 3;
        if ((key & 7) > static_cast<std::uint64_t>(FieldType::List))
            reject_message(describe() + " has an unknown type");
        type_ = static_cast<FieldType>(key & 7);
        if (type_ == FieldType::Number || type_ == FieldType::Signed) {
            number_ = take_number(rest_);
            return true;
        }
        const std::uint64_t bytes = type_ == FieldType::Real ? 8 : take_number(rest_);
        if (bytes > rest_.size()) reject_message(describe() + " is longer than its enclosing field");
        content_ = rest_.substr(0, bytes);
        rest_.remove_prefix(bytes);
        return true;
    }
    /// 0: a tag that no field has.
    std::uint32_t tag() const {
        return tag_ > std::numeric_limits<std::uint32_t>::max() ? 0 : static_cast<std::uint32_t>(tag_);
    }

    std::uint64_t number() const {
        require(FieldType::Number);
        return number_;
    }
    template <class T>
    T number_of() const {
        if (number() > static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
            reject_message(describe() + " is too large");
        return static_cast<T>(number());
    }
    std::int64_t signed_number() const {
        require(FieldType::Signed);
        return unzigzag(number_);
    }
    std::int32_t signed_32() const {
        const std::int64_t value = signed_number();
        if (value != static_cast<std::int32_t>(value)) reject_message(describe() + " is too large");
        return static_cast<std::int32_t>(value);
    }
    double real() const {
        require(FieldType::Real);
        return std::bit_cast<double>(little_endian_at<std::uint64_t>(content_, 0));
    }
    std::string_view text() const {
        require(FieldType::Text);
        return content_;
    }
    std::string_view fields() const {
        require(FieldType::Fields);
        return content_;
    }
    template <class Take>
    void list(Take take) const {
        require(FieldType::List);
        for (std::string_view rest = content_; !rest.empty();) take(unzigzag(take_number(rest)));
    }

  private:
    std::string describe() const { return std::string("field ") + std::to_string(tag_) + " of " + what_; }
    void require(FieldType type) const {
        if (type_ != type)
            reject_message(describe() + " is " + type_name(type_) + ", not " + type_name(type));
    }

    std::string_view rest_;
    std::string_view content_;
    const char* what_;
    std::uint64_t tag_ = 0;
    std::uint64_t number_ = 0;
    FieldType type_ = FieldType::Number;
};

std::int64_t add_wrapping(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

StringId string_number(std::int64_t value) {
    if (value < 0 || value > std::numeric_limits<StringId>::max())
        reject_message("a stack frame refers to a missing string");
    return static_cast<StringId>(value);
}

class MessageReader {
  public:
    EventMessage read(std::string_view body) {
        message_.processes.clear();
        for (FieldReader at(body, "the message"); at.next();) {
            switch (static_cast<MessageField>(at.tag())) {
                case MessageField::BootId:
                    message_.boot_id = at.text();
                    break;
                case MessageField::Start:
                    message_.start_ns = last_start_ns_ = at.signed_number();
                    break;
                case MessageField::End:
                    message_.end_ns = add_wrapping(message_.start_ns, at.signed_number());
                    break;
                case MessageField::Process:
                    read_process(at.fields());
                    break;
                case MessageField::String:
                    message_.strings.emplace_back(at.text());
                    break;
                case MessageField::Thread:
                    read_thread(at.fields());
                    break;
                case MessageField::Event:
                    read_event(at.fields());
                    break;
            }
        }
        check_message(message_);
        return std::move(message_);
    }

  private:
    void read_process(std::string_view fields) {
        RemoteProcess& process = message_.processes.emplace_back();
        for (FieldReader at(fields, "a process"); at.next();) {
            switch (static_cast<ProcessField>(at.tag())) {
                case ProcessField::Pid:
                    process.pid = at.signed_number();
                    break;
                case ProcessField::Node:
                    process.node = at.signed_32();
                    break;
                case ProcessField::Host:
                    process.host = at.text();
                    break;
                case ProcessField::Name:
                    process.name = at.text();
                    break;
            }
        }
    }

    void read_thread(std::string_view fields) {
        RemoteThread& thread = message_.threads.emplace_back();
        for (FieldReader at(fields, "a thread"); at.next();) {
            switch (static_cast<ThreadField>(at.tag())) {
                case ThreadField::Process:
                    thread.process = at.number_of<std::uint32_t>();
                    break;
                case ThreadField::Id:
                    thread.id = at.number();
                    break;
                case ThreadField::OsTid:
                    thread.os_tid = at.signed_number();
                    break;
                case ThreadField::Name:
                    thread.name = at.number_of<StringId>();
                    break;
            }
        }
    }

    void read_event(std::string_view fields) {
        RemoteEvent& event = message_.events.emplace_back();
        bool has_name = false, has_thread = false, has_start = false;
        std::int64_t duration_ns = 0;
        for (FieldReader at(fields, "an event"); at.next();) {
            const auto tag = static_cast<EventField>(at.tag());
            has_name |= tag == EventField::Name;
            has_thread |= tag == EventField::Thread;
            has_start |= tag == EventField::Start;
            if (tag == EventField::Duration)
                duration_ns = at.number_of<std::int64_t>();
            else
                read_event_field(at, tag, event);
        }
        // Without these an event could be smaller than the reader's representation of it.
        if (!has_name || !has_thread || !has_start)
            reject_message("an event lacks its name, thread or start");
        last_start_ns_ = event.start_ns;
        if (event.kind != RemoteEvent::Kind::Range) duration_ns = 0;
        event.end_ns = add_wrapping(event.start_ns, duration_ns);
    }

    void read_event_field(const FieldReader& at, EventField tag, RemoteEvent& event) {
        switch (tag) {
            case EventField::Name:
                event.name = at.number_of<StringId>();
                break;
            case EventField::Thread:
                event.thread = at.number();
                break;
            case EventField::Start:
                event.start_ns = add_wrapping(last_start_ns_, at.signed_number());
                break;
            case EventField::Duration:
                break;
            case EventField::Kind:
                event.kind = static_cast<RemoteEvent::Kind>(at.number_of<std::uint8_t>());
                break;
            case EventField::Scope:
                event.scope = static_cast<Scope>(at.number_of<std::uint8_t>());
                break;
            case EventField::Process:
                event.process = at.number_of<std::uint32_t>();
                break;
            case EventField::Flags:
                event.is_async = (at.number() & kFlagAsync) != 0;
                event.is_unfinished = (at.number() & kFlagUnfinished) != 0;
                event.is_refused = (at.number() & kFlagRefused) != 0;
                break;
            case EventField::Id:
                event.id = at.number();
                break;
            case EventField::Caller:
                event.caller = at.number_of<std::int64_t>() - 1;
                break;
            case EventField::Sequence:
                event.sequence = at.number_of<std::int64_t>();
                break;
            case EventField::ForwardThread:
                event.forward_thread = at.number_of<std::uint32_t>();
                break;
            case EventField::DeviceType:
                event.device.type = static_cast<DeviceType>(at.number_of<std::uint8_t>());
                break;
            case EventField::DeviceIndex:
                event.device.index = at.signed_32();
                break;
            case EventField::DeviceTime:
                event.device_ns = at.number_of<std::int64_t>();
                break;
            case EventField::CpuMemory:
                event.cpu_memory_bytes = at.signed_number();
                break;
            case EventField::DeviceMemory:
                event.device_memory_bytes = at.signed_number();
                break;
            case EventField::Address:
                event.address = at.number();
                break;
            case EventField::TotalAllocated:
                event.total_allocated = at.signed_number();
                break;
            case EventField::TotalReserved:
                event.total_reserved = at.signed_number();
                break;
            case EventField::Shape: {
                std::vector<std::int64_t>& shape = event.shapes.emplace_back();
                at.list([&](std::int64_t extent) { shape.push_back(extent); });
                break;
            }
            case EventField::Stack:
                at.list([&](std::int64_t frame) { event.stack.push_back(string_number(frame)); });
                break;
            case EventField::Value:
                read_value(at.fields(), event.values.emplace_back());
                break;
        }
    }

    static void read_value(std::string_view fields, RemoteValue& value) {
        bool has_key = false, has_value = false;
        for (FieldReader at(fields, "a value"); at.next();) {
            const auto tag = static_cast<ValueField>(at.tag());
            has_key |= tag == ValueField::Key;
            has_value |= tag >= ValueField::Boolean && tag <= ValueField::String;
            switch (tag) {
                case ValueField::Key:
                    value.key = at.number_of<StringId>();
                    break;
                case ValueField::Boolean:
                    value.value = at.number() != 0;
                    break;
                case ValueField::Integer:
                    value.value = at.signed_number();
                    break;
                case ValueField::Real:
                    value.value = at.real();
                    break;
                case ValueField::String:
                    value.value = at.number_of<StringId>();
                    break;
            }
        }
        if (!has_key || !has_value) reject_message("a value lacks its key or its content");
    }

    EventMessage message_;
    std::int64_t last_start_ns_ = 0;
};

}  // namespace

EventMessage unpack_events(std::string_view bytes) {
    if (bytes.size() < sizeof kMagic || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
        reject_message(bytes.empty() ? "it is empty" : "not an event message");
    if (bytes.size() < kHeaderBytes) reject_message("truncated in its header");
    const auto version = little_endian_at<std::uint16_t>(bytes, 8);
    if (version > kVersion)
        reject_message("version " + std::to_string(version) + "; this Marey supports versions up to " +
                       std::to_string(kVersion));
    if (version == 0) reject_message("invalid version 0");
    const auto size = little_endian_at<std::uint64_t>(bytes, 16);
    if (size > bytes.size())
        reject_message("truncated: " + std::to_string(bytes.size()) + " of " + std::to_string(size) +
                       " bytes");
    if (size < bytes.size() || size < kHeaderBytes + kChecksumBytes)
        reject_message("wrong length: " + std::to_string(bytes.size()) + " bytes, the header states " +
                       std::to_string(size));
    const std::string_view summed = bytes.substr(0, bytes.size() - kChecksumBytes);
    if (checksum64(std::as_bytes(std::span(summed))) != little_endian_at<std::uint64_t>(bytes, summed.size()))
        reject_message("damaged: wrong checksum");
    if (little_endian_at<std::uint16_t>(bytes, 10) != 0 || little_endian_at<std::uint32_t>(bytes, 12) != 0)
        reject_message("its header has unknown flags");
    return MessageReader().read(summed.substr(kHeaderBytes));
}

}  // namespace marey
