// nvtx_fixture.h: a fake NVTX, which calls Marey as the real one does; and traces as text.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <marey/trace.h>

#include "sources/nvtx/listener.h"
#include "sources/nvtx/nvtx_protocol.h"

namespace marey {

/// The tables of one library's NVTX. Only one exists, because the functions that return tables have no data.
class FakeNvtx {
  public:
    static constexpr unsigned kSlots = 16;

    static bool attach() { return attach_nvtx(table); }

    template <class Result, class... Arguments>
    static Result call(nvtx_protocol::Module module, unsigned slot, Arguments... arguments) {
        auto* const function = reinterpret_cast<Result (*)(Arguments...)>(
            module == nvtx_protocol::kCore ? core[slot] : core2[slot]);
        return function(arguments...);
    }

    static const void* table(std::uint32_t number) {
        static const nvtx_protocol::CallbacksTable callbacks{sizeof callbacks, functions};
        return number == nvtx_protocol::kCallbacksTable ? &callbacks : nullptr;
    }
    static int functions(int module, nvtx_protocol::FunctionTable* table_of, unsigned* slots) {
        static nvtx_protocol::Function* places[2][kSlots];
        if (module != nvtx_protocol::kCore && module != nvtx_protocol::kCore2) return 0;
        const bool is_core = module == nvtx_protocol::kCore;
        for (unsigned i = 1; i < kSlots; ++i) places[is_core ? 0 : 1][i] = is_core ? &core[i] : &core2[i];
        *table_of = places[is_core ? 0 : 1];
        *slots = kSlots;
        return 1;
    }
    static inline nvtx_protocol::Function core[kSlots];
    static inline nvtx_protocol::Function core2[kSlots];
};

/// Attributes as a current program fills them in.
inline nvtx_protocol::EventAttributes attributes(const char* text = nullptr) {
    nvtx_protocol::EventAttributes made{};
    made.version = 3;
    made.bytes = sizeof made;
    if (text != nullptr) {
        made.message_type = nvtx_protocol::kMessageAscii;
        made.message.ascii = text;
    }
    return made;
}

// NVTX functions, under NVTX's names.
inline int push(const char* text) {
    return FakeNvtx::call<int>(nvtx_protocol::kCore, nvtx_protocol::kRangePushA, text);
}
inline int pop() {
    return FakeNvtx::call<int>(nvtx_protocol::kCore, nvtx_protocol::kRangePop);
}
inline int push(std::uintptr_t domain, const nvtx_protocol::EventAttributes* event) {
    return FakeNvtx::call<int>(nvtx_protocol::kCore2, nvtx_protocol::kDomainRangePushEx, domain, event);
}
inline int pop(std::uintptr_t domain) {
    return FakeNvtx::call<int>(nvtx_protocol::kCore2, nvtx_protocol::kDomainRangePop, domain);
}
inline std::uint64_t start(const char* text) {
    return FakeNvtx::call<std::uint64_t>(nvtx_protocol::kCore, nvtx_protocol::kRangeStartA, text);
}
inline void end(std::uint64_t number) {
    FakeNvtx::call<void>(nvtx_protocol::kCore, nvtx_protocol::kRangeEnd, number);
}
inline void mark(const char* text) {
    FakeNvtx::call<void>(nvtx_protocol::kCore, nvtx_protocol::kMarkA, text);
}
inline std::uintptr_t domain(const char* name) {
    return FakeNvtx::call<std::uintptr_t>(nvtx_protocol::kCore2, nvtx_protocol::kDomainCreateA, name);
}
inline std::uintptr_t registered(std::uintptr_t domain_handle, const char* text) {
    return FakeNvtx::call<std::uintptr_t>(nvtx_protocol::kCore2, nvtx_protocol::kDomainRegisterStringA,
                                          domain_handle, text);
}

/// " key=value" for each value.
inline std::string described(const Trace& trace, std::span<const Argument> values) {
    std::string text;
    for (const Argument& value : values) {
        text += " " + std::string(trace.string(value.key)) + "=";
        if (value.kind == ValueKind::String) text += trace.string(value.string);
        if (value.kind == ValueKind::Int) text += std::to_string(value.integer);
        if (value.kind == ValueKind::Double) text += std::to_string(value.real);
    }
    return text;
}

/// Each range: dots for its depth, category, name, values, "async" and "unfinished".
inline std::vector<std::string> described(const Trace& trace) {
    std::vector<std::string> lines;
    const RangeColumns ranges = trace.ranges();
    for (Row row = 0; row < ranges.size(); ++row) {
        const SiteInfo& site = trace.sites()[ranges.site[row]];
        std::string line = std::string(ranges.depth[row], '.') + std::string(trace.string(site.category)) +
                           ":" + std::string(trace.range_name(row)) +
                           described(trace, trace.range_arguments(row));
        if (trace.tracks()[trace.track_of(row)].kind == TrackKind::Async) line += " async";
        if ((ranges.flags[row] & kUnfinished) != 0) line += " unfinished";
        if ((ranges.flags[row] & kBeganBefore) != 0) line += " began before";
        if ((ranges.flags[row] & kEndInferred) != 0) line += " end inferred";
        lines.push_back(std::move(line));
    }
    return lines;
}

}  // namespace marey
