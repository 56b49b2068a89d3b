// merged_records_fuzzer.cpp: any bytes as the identities, tokens, exchanges and remote calls of captures that
// are merged, and as the settings that name their tree.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/error.h>
#include <marey/merge.h>
#include <marey/remote.h>
#include <marey/token.h>

#include "collect/log_fixture.cpp"  // NOLINT(bugprone-suspicious-include): only tests link it
#include "collect/trace_builder.h"
#include "record/process_identity.h"
#include "trace/trace_assembler.h"
#include "trace/trace_data.h"

namespace {

/// Bytes in turn; zeros after the last one.
class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
    bool has_more() const { return !rest_.empty(); }
    template <class Value>
    Value take() {
        Value value{};
        const std::size_t bytes = std::min(rest_.size(), sizeof value);
        std::memcpy(static_cast<void*>(&value), rest_.data(), bytes);
        rest_ = rest_.subspan(bytes);
        return value;
    }
    std::size_t below(std::size_t limit) { return take<std::uint8_t>() % limit; }

  private:
    std::span<const std::uint8_t> rest_;
};

constexpr const char* kHosts[] = {"alpha", "beta", "gamma"};

/// Times of hosts that nobody has forged are small; forged ones may be anything.
std::int64_t take_time(Input& input) {
    return input.below(4) == 0 ? input.take<std::int64_t>() : input.take<std::int16_t>();
}

void add_record(marey::testing::LogWriter& log, Input& input) {
    using marey::detail::JournalKind;
    switch (input.below(4)) {
        case 0: {
            auto record = input.take<marey::detail::ProcessIdentityRecord>();
            if (input.below(2) == 0) std::snprintf(record.boot_id, sizeof record.boot_id, "boot");
            std::vector<std::byte> ancestors(input.below(20) * sizeof(marey::detail::AncestorRecord));
            for (std::byte& each : ancestors) each = input.take<std::byte>();
            log.journal(JournalKind::ProcessIdentity, record, ancestors);
            break;
        }
        case 1: {
            auto token = input.take<marey::Token>();
            token.sender %= 3;
            token.number %= 5;
            std::vector<std::byte> bytes(sizeof token);
            std::memcpy(bytes.data(), &token, sizeof token);
            bytes.resize(input.below(2) == 0 ? sizeof token : input.below(32));
            log.thread(1).blob(input.below(2) == 0 ? marey::detail::kBlobSend : marey::detail::kBlobReceive,
                               bytes, input.take<std::uint16_t>());
            break;
        }
        case 2: {
            std::int64_t times[4];
            for (std::int64_t& time : times) time = take_time(input);
            log.exchange(kHosts[input.below(3)], times[0], times[1], times[2], times[3]);
            break;
        }
        default: {
            marey::TraceAssembler sender;
            const std::int64_t start_ns = take_time(input);
            sender.set_window(start_ns, std::max(start_ns, take_time(input)));
            marey::ProcessInfo process;
            process.host = sender.string(kHosts[input.below(3)]);
            sender.add_process(process);
            marey::detail::RemoteEventsRecord record{};
            record.session = 1;
            record.node = -1;
            record.call_start = input.take<std::uint16_t>();
            record.call_end = record.call_start + input.take<std::uint16_t>();
            log.remote(record, "", marey::pack_events(sender.finish()));
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    marey::RequestedTree tree;
    marey::parse_tree({reinterpret_cast<const char*>(data), size}, tree);
    Input input(data, size);
    std::vector<marey::Trace> traces;
    try {
        while (input.has_more() && traces.size() < 4) {
            marey::testing::LogWriter log;
            log.host = kHosts[traces.size() % 3];
            const auto pid = static_cast<std::int64_t>(input.below(3));
            const auto node = static_cast<std::int32_t>(input.below(4)) - 1;
            log.start(1, 1).born(1, "main", 1);
            for (std::size_t records = input.below(8); records-- != 0;) add_record(log, input);
            log.thread(1).range("work", 2, 60'000, 0);
            log.stop(1, 60'001);
            marey::RawLog raw = log.raw();
            raw.pid = pid;
            raw.node = node;
            traces.push_back(marey::build_trace(raw));
        }
        const marey::Trace merged = marey::merge_traces(std::move(traces));
        const std::string damage = marey::find_damage(merged.data());
        if (!damage.empty()) {
            std::fprintf(stderr, "check failed: the tables are consistent: %s\n", damage.c_str());
            std::abort();
        }
    } catch (const marey::Error&) {
    }
    return 0;
}
