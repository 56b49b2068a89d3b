// rank_files.cpp: reads the captures and traces of a job's ranks one by one.
#include <algorithm>
#include <filesystem>

#include <marey/error.h>
#include <marey/import.h>
#include <marey/ranks.h>

#include "analyze/ranks/finding_text.h"

namespace marey {
namespace {

/// Whether a file that is not a capture may have ranks.
bool is_trace(const std::string& path) {
    try {
        const FileFormat* const format = detect_format(path);
        return format != nullptr && (format->name == "chrome" || format->name == "perfetto");
    } catch (const Error&) {
        return false;
    }
}

/// The captures in a folder or, if there are none, the traces of other tools.
std::vector<std::string> files_in(const std::string& folder) {
    namespace fs = std::filesystem;
    std::error_code error;
    std::vector<std::string> captures, others;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        std::error_code unknown;
        const bool is_capture = entry->path().extension() == ".marey";
        if (is_capture || entry->is_regular_file(unknown))
            (is_capture ? captures : others).push_back(entry->path().string());
    }
    if (error) throw Error(folder + ": " + error.message());
    if (captures.empty()) {
        std::copy_if(others.begin(), others.end(), std::back_inserter(captures), is_trace);
        if (captures.empty())
            throw Error(folder +
                        ": no captures (*.marey) and no Chrome, PyTorch or Perfetto traces in this folder");
    }
    std::ranges::sort(captures);
    return captures;
}

}  // namespace

RankFiles read_ranks(std::span<const std::string> paths, const RankOptions& options,
                     const std::string& format) {
    namespace fs = std::filesystem;
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        std::error_code error;
        if (!fs::is_directory(path, error)) {
            files.push_back(path);
            continue;
        }
        const std::vector<std::string> inside = files_in(path);
        files.insert(files.end(), inside.begin(), inside.end());
    }
    RankFiles result;
    RankReader reader(options);
    for (const std::string& file : files) {
        try {
            const Trace trace = open_trace(file, format);
            const auto processes = trace.processes();
            if (std::ranges::none_of(processes, [](const ProcessInfo& process) { return process.node >= 0; }))
                result.left_out.push_back({file, std::string(kNoRankText), true});
            else
                reader.add(trace);
        } catch (const Error& error) {
            const std::string_view text = error.what();
            const bool is_named = text.starts_with(file + ": ");
            result.left_out.push_back({file, std::string(is_named ? text.substr(file.size() + 2) : text)});
        }
    }
    try {
        result.report = reader.report();
    } catch (const Error& error) {
        if (result.left_out.empty()) throw;
        const RankFileError& first = result.left_out.front();
        throw Error(std::string(error.what()) + "; " + first.path + ": " + first.text);
    }
    return result;
}

}  // namespace marey
