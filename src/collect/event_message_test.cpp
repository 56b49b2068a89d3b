// event_message_test.cpp: messages keep everything, and anything else is rejected.
#include "collect/event_message.h"

#include <random>
#include <span>
#include <string>

#include <gtest/gtest.h>
#include <marey/error.h>
#include <marey/remote.h>

#include "base/checksum.h"
#include "base/golden_fixture.h"

namespace marey {
namespace {

using event_message::kChecksumBytes;
using event_message::kHeaderBytes;

// Every field has a distinct value.
EventMessage rich_message() {
    EventMessage message;
    message.boot_id = "9e4d";
    message.start_ns = 1000;
    message.end_ns = 5'000'000'000'000;
    message.processes = {{4711, 3, "host", "/bin/server"}, {-1, -1, "", ""}};
    message.threads = {{0, 0xffff'ffff'ffff'fff1, 77, message.add_string("worker")}};
    RemoteEvent range;
    range.scope = Scope::BackwardFunction;
    range.is_async = true;
    range.is_unfinished = true;
    range.name = message.add_string("matmul");
    range.process = 1;
    range.device = {DeviceType::Cuda, 2};
    range.thread = 0xffff'ffff'ffff'fff1;
    range.id = (std::uint64_t{1} << 53) + 1;
    range.start_ns = 2000;
    range.end_ns = 4'000'000'000'000;
    range.caller = 1;
    range.sequence = 12;
    range.forward_thread = 9;
    range.device_ns = 345;
    range.cpu_memory_bytes = -4096;
    range.device_memory_bytes = std::int64_t{1} << 40;
    range.shapes = {{2, 3}, {}, {-1, std::numeric_limits<std::int64_t>::max()}};
    range.stack = {message.add_string("f.py:1"), message.add_string("g.py:2")};
    range.values = {{message.add_string("ok"), true},
                    {message.add_string("n"), std::numeric_limits<std::int64_t>::min()},
                    {message.add_string("x"), -0.5},
                    {message.add_string("text"), message.add_string("matmul")}};
    RemoteEvent mark;
    mark.kind = RemoteEvent::Kind::Mark;
    mark.name = message.add_string("here");
    mark.start_ns = mark.end_ns = -5;
    RemoteEvent memory;
    memory.kind = RemoteEvent::Kind::Memory;
    memory.is_refused = true;
    memory.start_ns = memory.end_ns = 1;
    memory.address = ~std::uint64_t{0};
    memory.total_allocated = 10;
    memory.total_reserved = -20;
    message.events = {range, mark, memory};
    return message;
}

void expect_equal(const EventMessage& a, const EventMessage& b) {
    EXPECT_EQ(a.boot_id, b.boot_id);
    EXPECT_EQ(a.start_ns, b.start_ns);
    EXPECT_EQ(a.end_ns, b.end_ns);
    ASSERT_EQ(a.processes.size(), b.processes.size());
    for (std::size_t i = 0; i < a.processes.size(); ++i) {
        EXPECT_EQ(a.processes[i].pid, b.processes[i].pid);
        EXPECT_EQ(a.processes[i].node, b.processes[i].node);
        EXPECT_EQ(a.processes[i].host, b.processes[i].host);
        EXPECT_EQ(a.processes[i].name, b.processes[i].name);
    }
    const auto same = [&](StringId x, StringId y) { return a.strings.at(x) == b.strings.at(y); };
    ASSERT_EQ(a.threads.size(), b.threads.size());
    for (std::size_t i = 0; i < a.threads.size(); ++i) {
        EXPECT_EQ(a.threads[i].process, b.threads[i].process);
        EXPECT_EQ(a.threads[i].id, b.threads[i].id);
        EXPECT_EQ(a.threads[i].os_tid, b.threads[i].os_tid);
        EXPECT_TRUE(same(a.threads[i].name, b.threads[i].name));
    }
    ASSERT_EQ(a.events.size(), b.events.size());
    for (std::size_t i = 0; i < a.events.size(); ++i) {
        SCOPED_TRACE(i);
        const RemoteEvent& x = a.events[i];
        const RemoteEvent& y = b.events[i];
        EXPECT_EQ(x.kind, y.kind);
        EXPECT_EQ(x.scope, y.scope);
        EXPECT_EQ(x.is_async, y.is_async);
        EXPECT_EQ(x.is_unfinished, y.is_unfinished);
        EXPECT_EQ(x.is_refused, y.is_refused);
        EXPECT_TRUE(same(x.name, y.name));
        EXPECT_EQ(x.process, y.process);
        EXPECT_EQ(x.device, y.device);
        EXPECT_EQ(x.thread, y.thread);
        EXPECT_EQ(x.id, y.id);
        EXPECT_EQ(x.start_ns, y.start_ns);
        EXPECT_EQ(x.end_ns, y.end_ns);
        EXPECT_EQ(x.caller, y.caller);
        EXPECT_EQ(x.sequence, y.sequence);
        EXPECT_EQ(x.forward_thread, y.forward_thread);
        EXPECT_EQ(x.device_ns, y.device_ns);
        EXPECT_EQ(x.cpu_memory_bytes, y.cpu_memory_bytes);
        EXPECT_EQ(x.device_memory_bytes, y.device_memory_bytes);
        EXPECT_EQ(x.address, y.address);
        EXPECT_EQ(x.total_allocated, y.total_allocated);
        EXPECT_EQ(x.total_reserved, y.total_reserved);
        EXPECT_EQ(x.shapes, y.shapes);
        ASSERT_EQ(x.stack.size(), y.stack.size());
        for (std::size_t k = 0; k < x.stack.size(); ++k) EXPECT_TRUE(same(x.stack[k], y.stack[k]));
        ASSERT_EQ(x.values.size(), y.values.size());
        for (std::size_t k = 0; k < x.values.size(); ++k) {
            EXPECT_TRUE(same(x.values[k].key, y.values[k].key));
            ASSERT_EQ(x.values[k].value.index(), y.values[k].value.index());
            if (const auto* const text = std::get_if<StringId>(&x.values[k].value)) {
                EXPECT_TRUE(same(*text, std::get<StringId>(y.values[k].value)));
            } else {
                EXPECT_EQ(x.values[k].value, y.values[k].value);
            }
        }
    }
}

std::string rejection_reason(const std::string& bytes) {
    try {
        unpack_events(bytes);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

// A message with the given body, with valid length and checksum.
std::string forged(const std::string& body) {
    std::string bytes = pack_events({}).substr(0, kHeaderBytes - 8);
    const auto put = [&](std::uint64_t word) {
        for (int i = 0; i < 8; ++i) bytes += static_cast<char>(word >> (8 * i));
    };
    put(kHeaderBytes + body.size() + kChecksumBytes);
    bytes += body;
    put(checksum64(std::as_bytes(std::span(bytes))));
    return bytes;
}
std::string body_of(const std::string& packed) {
    return packed.substr(kHeaderBytes, packed.size() - kHeaderBytes - kChecksumBytes);
}

// L1 L2 L4
TEST(EventMessage, KeepsEveryFieldAndAll64BitsOfIds) {
    const EventMessage message = rich_message();
    expect_equal(message, unpack_events(pack_events(message)));
    expect_equal(EventMessage(), unpack_events(pack_events({})));
}

TEST(EventMessage, ARangeTakesAFewBytesAndARepeatedNameOne) {
    EventMessage message;
    const StringId name = message.add_string(std::string(300, 'n'));
    for (int i = 0; i < 1000; ++i) {
        RemoteEvent& event = message.events.emplace_back();
        event.name = name;
        event.thread = 1;
        event.start_ns = i * 1000;
        event.end_ns = i * 1000 + 500;
    }
    EXPECT_LT(pack_events(message).size(), 1000 * 14 + 400u);
}

TEST(EventMessage, ANewerVersionIsRejectedByName) {
    std::string bytes = pack_events(rich_message());
    bytes[8] = 2;
    EXPECT_EQ(rejection_reason(bytes), "event message: version 2; this Marey supports versions up to 1");
}

TEST(EventMessage, ATruncatedOneIsRejected) {
    const std::string bytes = pack_events(rich_message());
    for (std::size_t length = 0; length < bytes.size(); ++length)
        EXPECT_NE(rejection_reason(bytes.substr(0, length)), "") << length;
    EXPECT_EQ(rejection_reason(bytes.substr(0, 100)),
              "event message: truncated: 100 of " + std::to_string(bytes.size()) + " bytes");
    EXPECT_NE(rejection_reason(bytes + "x"), "");
    EXPECT_NE(rejection_reason("GET / HTTP/1.1"), "");
}

TEST(EventMessage, OneWithAnyBitFlippedIsRejected) {
    std::string bytes = pack_events(rich_message());
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
        EXPECT_NE(rejection_reason(bytes), "") << bit;
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    }
}

TEST(EventMessage, FieldsOfWrongTypesAreRejected) {
    // Keys: tag << 3 | type.
    EXPECT_EQ(rejection_reason(forged("\x10\x01")),
              "event message: field 2 of the message is a number, not a signed number");
    EXPECT_EQ(rejection_reason(forged(std::string("\x3a\x01\x02\x03\x04\x05\x06\x07\x08", 9))),
              "event message: field 7 of the message is a real number, not fields");
    EXPECT_EQ(rejection_reason(forged("\x07\x01")),
              "event message: field 0 of the message has an unknown type");
    EXPECT_EQ(rejection_reason(forged(std::string("\x3c\x02\x0b\x00", 4))),
              "event message: field 1 of an event is a text, not a number");
}

TEST(EventMessage, InconsistentForgedOnesAreRejected) {
    EXPECT_EQ(rejection_reason(forged("")), "event message: it has no process");
    EXPECT_EQ(rejection_reason(forged("\x2b\x7f")),
              "event message: field 5 of the message is longer than its enclosing field");
    EXPECT_EQ(rejection_reason(forged(std::string("\x24\x00\x3c\x00", 4))),
              "event message: an event lacks its name, thread or start");
    EXPECT_EQ(rejection_reason(forged(std::string("\x24\x00\x3c\x06\x08\x05\x10\x00\x19\x00", 10))),
              "event message: an event's name refers to a missing string");
    EXPECT_EQ(rejection_reason(forged("\x11" + std::string(9, '\xff') + "\x02")),
              "event message: a number has more than 64 bits");
    EventMessage backwards = rich_message();
    backwards.events[0].end_ns = backwards.events[0].start_ns - 1;
    EXPECT_THROW(pack_events(backwards), Error);
    EventMessage nowhere = rich_message();
    nowhere.events[0].process = 2;
    EXPECT_THROW(pack_events(nowhere), Error);
}

TEST(EventMessage, FieldsThatALaterMareyMayAddAreSkipped) {
    // Tag 100 as a number, 101 as a text, 102 as fields that are not read.
    const std::string added("\xa0\x06\x01\xab\x06\x02hi\xb4\x06\x01\xff", 12);
    const std::string packed = pack_events(rich_message());
    expect_equal(rich_message(), unpack_events(forged(body_of(packed) + added)));
}

TEST(EventMessage, TheSeedOfTheFuzzerHasEveryField) {
    expect_file(body_of(pack_events(rich_message())),
                MAREY_SOURCE_DIR "/tests/data/corpus/event_message/every_field.body");
}

TEST(EventMessage, RandomBodiesAreReadOrRejectedButNothingElse) {
    std::mt19937 random(7);
    const std::string body = body_of(pack_events(rich_message()));
    int read = 0;
    for (int i = 0; i < 20'000; ++i) {
        std::string changed = body;
        for (unsigned k = 0; k <= random() % 3; ++k)
            changed[random() % changed.size()] = static_cast<char>(random());
        try {
            const EventMessage message = unpack_events(forged(changed));
            expect_equal(message, unpack_events(pack_events(message)));
            ++read;
        } catch (const Error&) {
        }
    }
    EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace marey
