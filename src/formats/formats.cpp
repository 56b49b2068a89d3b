// formats.cpp: reads and writes files by the list of formats.
#include "formats/formats.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <marey/error.h>
#include <marey/import.h>

#include "base/output_file.h"
#include "formats/file_header.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

/// Decompresses the file if it is gzip. If the compressed data is damaged, the part before is read and the
/// trace has the problem "cut_short".
Trace read_whole(const std::string& path, const FileFormat& format) {
    std::string damage;
    Trace trace = format.read_bytes(read_whole_file(path, damage), path);
    if (damage.empty()) return trace;
    const auto data = changeable_data(std::move(trace));
    data->problems.push_back({"cut_short", "Only the part before the damage was read: " + damage, 1});
    return Trace(data);
}

Trace read_file(const std::string& path, const FileFormat& format) {
    return format.read != nullptr ? format.read(path) : read_whole(path, format);
}

std::string listed(bool are_written) {
    std::string list;
    for (const FileFormat& format : file_formats()) {
        if (are_written ? format.write == nullptr : format.recognizes == nullptr) continue;
        list.append(list.empty() ? "" : ", ").append(format.name);
        for (std::size_t i = 0; are_written && i < format.suffixes.size(); ++i)
            list.append(i == 0 ? " (" : " ").append(format.suffixes[i]);
        if (are_written) list += ")";
    }
    return list;
}

}  // namespace

FileFormat capture_format() {
    static constexpr std::string_view kSuffixes[] = {".marey"};
    constexpr auto kIsCapture = [](std::span<const std::byte> head) noexcept {
        return head.size() >= 5 && std::memcmp(head.data(), "MAREY", 5) == 0;
    };
    return {"marey",
            "Marey captures",
            "",
            kSuffixes,
            [](const Trace& trace, const std::string& path) { trace.save(path); },
            kIsCapture,
            nullptr,
            [](const std::string& path) { return Trace::load(path); }};
}

std::span<const FileFormat> file_formats() noexcept {
#define MAREY_CALL_FORMAT(name) name##_format(),
    static const FileFormat formats[] = {MAREY_FORMATS(MAREY_CALL_FORMAT)};
#undef MAREY_CALL_FORMAT
    return formats;
}

const FileFormat* detect_format(const std::string& path) {
    const std::vector<std::byte> head = read_file_head(path);
    for (const FileFormat& format : file_formats()) {
        if (format.recognizes != nullptr && format.recognizes(head)) return &format;
    }
    return nullptr;
}

Trace open_trace(const std::string& path, std::string_view name) {
    if (!name.empty()) {
        for (const FileFormat& format : file_formats()) {
            if (format.name == name && format.recognizes != nullptr) return read_file(path, format);
        }
        throw Error(path + ": unknown format '" + std::string(name) + "'; known: " + listed(false));
    }
    if (const FileFormat* const format = detect_format(path)) return read_file(path, *format);
    if (!std::filesystem::is_regular_file(path)) {
        // The format of a pipe cannot be detected, because reading its first bytes would consume them.
        try {
            return Trace::load(path);
        } catch (const Error& error) {
            throw Error(std::string(error.what()) +
                        "; a pipe is read as a Marey capture unless --from gives its format");
        }
    }
    if (std::filesystem::file_size(path) == 0) throw Error(path + ": the file is empty");
    throw Error(path + ": unknown file format; known: " + listed(false));
}

const FileFormat& export_format(std::string_view name, const std::string& path) {
    const FileFormat* best = nullptr;
    std::size_t longest = 0;
    for (const FileFormat& format : file_formats()) {
        if (format.write == nullptr) continue;
        if (!name.empty()) {
            if (format.name == name) return format;
            continue;
        }
        for (const std::string_view suffix : format.suffixes) {
            if (path.size() <= suffix.size() || !path.ends_with(suffix) || suffix.size() <= longest) continue;
            longest = suffix.size();
            best = &format;
        }
    }
    if (best != nullptr) return *best;
    throw Error(path +
                (name.empty() ? ": no export format for this file name"
                              : ": unknown export format '" + std::string(name) + "'") +
                "; known: " + listed(true));
}

std::string output_target(const std::string& path) {
    return resolve_output(path);
}

void export_trace(const Trace& trace, const std::string& path, std::string_view format) {
    export_format(format, path).write(trace, path);
}

}  // namespace marey
