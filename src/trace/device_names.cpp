// device_names.cpp: numbers as in CUPTI's and Nsight's tables.
#include "trace/device_names.h"

namespace marey {
namespace {

template <std::size_t count>
std::string_view word(const std::string_view (&words)[count], std::int64_t number,
                      std::string_view unknown) noexcept {
    return number >= 0 && number < static_cast<std::int64_t>(count) ? words[number] : unknown;
}

}  // namespace

std::string_view copy_name(std::int64_t kind) noexcept {
    static constexpr std::string_view kNames[] = {"Memcpy",
                                                  "Memcpy HtoD",
                                                  "Memcpy DtoH",
                                                  "Memcpy HtoA",
                                                  "Memcpy AtoH",
                                                  "Memcpy AtoA",
                                                  "Memcpy AtoD",
                                                  "Memcpy DtoA",
                                                  "Memcpy DtoD",
                                                  "Memcpy HtoH",
                                                  "Memcpy PtoP",
                                                  "Memcpy HtoD (unified memory)",
                                                  "Memcpy DtoH (unified memory)",
                                                  "Memcpy DtoD (unified memory)"};
    return word(kNames, kind, kNames[0]);
}

std::string_view cupti_memory_kind(std::int64_t kind) noexcept {
    static constexpr std::string_view kNames[] = {"",      "Pageable", "Pinned",        "Device",
                                                  "Array", "Managed",  "Device Static", "Managed Static"};
    return word(kNames, kind, "");
}

std::string_view nsight_memory_kind(std::int64_t kind) noexcept {
    static constexpr std::string_view kNames[] = {"Pageable", "Pinned",        "Device",        "Array",
                                                  "Managed",  "Device Static", "Managed Static"};
    return word(kNames, kind, "");
}

std::string_view synchronization_name(std::int64_t kind) noexcept {
    static constexpr std::string_view kNames[] = {"Sync", "Event Sync", "Stream Wait Event", "Stream Sync",
                                                  "Context Sync"};
    return word(kNames, kind, kNames[0]);
}

}  // namespace marey
