// source_file.cpp: which source files the page may show, and their text.
#include "serve/source_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <memory>

#include "serve/api.h"

namespace marey::serve {
namespace {

constexpr off_t kMaxSourceBytes = off_t{4} << 20;

/// The absolute path without links; empty if there is no such file.
std::string resolved(const std::string& path) {
    const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(path.c_str(), nullptr), &std::free);
    return whole != nullptr ? whole.get() : "";
}

bool is_below(const std::string& path, const std::string& folder) {
    return !folder.empty() && path.size() > folder.size() && path.starts_with(folder) &&
           (folder.back() == '/' || path[folder.size()] == '/');
}

bool is_small_file(const struct stat& facts) noexcept {
    return S_ISREG(facts.st_mode) && facts.st_size < kMaxSourceBytes;
}

}  // namespace

std::optional<std::string> find_source(std::string_view file, const std::vector<std::string>& folders) {
    if (file.empty() || file.size() >= PATH_MAX || file.find('\0') != file.npos) return {};
    for (const std::string& folder : folders) {
        const std::string name = file.front() == '/' ? std::string(file) : folder + "/" + std::string(file);
        const std::string path = resolved(name);
        struct stat facts {};
        if (is_below(path, resolved(folder)) && ::stat(path.c_str(), &facts) == 0 && is_small_file(facts))
            return path;
    }
    return {};
}

std::string read_source(std::string_view file, const std::vector<std::string>& folders) {
    const auto path = find_source(file, folders);
    // Checked again once it is open: the file may have been replaced.
    const int opened = path ? ::open(path->c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    struct stat facts {};
    std::string text;
    bool is_read = false;
    if (opened >= 0 && ::fstat(opened, &facts) == 0 && is_small_file(facts)) {
        text.resize(static_cast<std::size_t>(facts.st_size));
        std::size_t filled = 0;
        for (ssize_t got = 1; filled < text.size() && got > 0;
             filled += got > 0 ? static_cast<std::size_t>(got) : 0)
            got = ::read(opened, text.data() + filled, text.size() - filled);
        text.resize(filled);
        is_read = true;
    }
    if (opened >= 0) ::close(opened);
    if (!is_read)
        throw RequestError(404,
                           "this file is not shown: only files below the working directory or --source DIR "
                           "and under 4 MiB are");
    return text;
}

Answer answer_source(const Question& question) {
    const Trace& trace = question.trace();
    const SiteInfo& site = trace.sites()[question.row("site", trace.sites().size())];
    const std::string text = read_source(trace.string(site.file), question.source_dirs);
    Answer answer;
    JsonWriter json(answer.body);
    json.begin_object().member("file", trace.string(site.file)).member("line", site.line);
    json.member("first", 1).member("text", text).end_object();
    return answer;
}

}  // namespace marey::serve
