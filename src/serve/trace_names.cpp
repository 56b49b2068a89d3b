// trace_names.cpp: the names of ranges, tracks and devices as the page shows them.
#include "serve/trace_names.h"

#include "base/enum_names.h"

namespace marey::serve {

bool is_cut(std::string_view name) noexcept {
    return name.size() > kMaxNameBytes;
}

std::string_view short_name(std::string_view name) noexcept {
    if (!is_cut(name)) return name;
    std::size_t end = kMaxNameBytes;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
    return name.substr(0, end);
}

std::string_view label_of(const Trace& trace, const SiteInfo& site) noexcept {
    constexpr std::string_view kMark = "): ";  // "json/decoder.py(332): JSONDecoder.decode"
    const std::string_view name = trace.string(site.name);
    if (site.scope != Scope::PythonFunction) return name;
    const std::size_t mark = name.find(kMark);
    return mark == name.npos ? name : name.substr(mark + kMark.size());
}

std::string accelerator_label(const Device& device) {
    return device.type == DeviceType::Cpu || device.type == DeviceType::None ? "" : device_label(device);
}

std::string device_label(const Device& device) {
    std::string text = device_type_name(device.type);
    if (device.index >= 0) text += ":" + std::to_string(device.index);
    return text;
}

std::string track_label(const Trace& trace, const TrackInfo& track) {
    std::string_view name = trace.string(track.name);
    if (name.empty()) name = trace.string(trace.threads()[track.thread].name);
    if (!name.empty()) return std::string(short_name(name));
    if (track.stream >= 0) return "stream " + std::to_string(track.stream);
    return "thread " + std::to_string(trace.threads()[track.thread].id);
}

const char* track_kind_name(TrackKind kind) noexcept {
    static constexpr const char* kNames[] = {"thread", "async", "device", "overlap"};
    return name_at(kNames, kind, "thread");
}

void write_name(JsonWriter& json, std::string_view name) {
    json.member("name", short_name(name));
    if (is_cut(name)) json.member("cut", true);
}

}  // namespace marey::serve
