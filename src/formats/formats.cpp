// formats.cpp: reads, checks and writes files by the list of formats.
#include "formats/formats.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include <marey/error.h>
#include <marey/import.h>
#include <marey/validate.h>

#include "analyze/violation_list.h"
#include "base/output_file.h"
#include "formats/chrome/read.h"
#include "formats/chrome/violations.h"
#include "json/input_text.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

/// Up to 64 KiB, decompressed if the file is gzip. If the data is damaged, the part before the damage; the
/// reader reports the error. Empty for files that cannot be read twice (pipes). Throws marey::Error if
/// nothing can be read.
std::vector<std::byte> read_file_head(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) throw Error(path + ": " + std::strerror(errno));
    if (S_ISDIR(status.st_mode)) throw Error(path + ": " + std::strerror(EISDIR));
    if (!S_ISREG(status.st_mode)) return {};
    const std::unique_ptr<ByteSource> source = open_source(path);
    std::vector<std::byte> head(std::size_t{64} * 1024);
    std::size_t size = 0;
    while (size < head.size()) {
        const std::size_t count =
            source->read(reinterpret_cast<char*>(head.data()) + size, head.size() - size);
        if (count == 0) break;
        size += count;
    }
    if (size == 0 && !source->damage().empty()) throw Error(path + ": " + source->damage());
    head.resize(size);
    return head;
}

/// The whole file, decompressed if it is gzip; `damage` is why the data ended early, or empty. Throws
/// marey::Error if it cannot be opened.
std::string read_whole_file(const std::string& path, std::string& damage) {
    const std::unique_ptr<ByteSource> source = open_source(path);
    constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
    std::string text;
    std::size_t count = 0;
    do {
        const std::size_t before = text.size();
        text.resize(before + kPieceBytes);
        count = source->read(text.data() + before, kPieceBytes);
        text.resize(before + count);
    } while (count != 0);
    damage = source->damage();
    return text;
}

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

std::vector<Violation> validate_file(const std::string& path, std::string_view format) {
    if (format.empty()) {
        const FileFormat* const known = detect_format(path);
        if (known != nullptr) format = known->name;
    }
    if (format != "chrome") return validate(open_trace(path, format));
    std::string damage;
    const std::string text = read_whole_file(path, damage);
    if (!damage.empty()) throw Error(path + ": " + damage);
    ViolationList violations;
    const bool is_strict = check_json(text, violations);
    try {
        violations.merge(validate(read_chrome_json(path, memory_source(text), 128 << 10, &violations)));
    } catch (const Error&) {
        if (is_strict) throw;
    }
    return violations.take();
}

}  // namespace marey
