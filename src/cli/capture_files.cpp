// capture_files.cpp: the file names of captures: an unused one for a run, and those that a run has written.
#include "cli/capture_files.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <marey/error.h>
#include <marey/merge.h>

#include "cli/capture_argument.h"
#include "cli/text_format.h"

namespace marey::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".marey";

bool exists(const std::string& path) {
    std::error_code error;
    return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

/// Files that are not captures have no tree; reading them reports what they are. A pipe can be read only
/// once.
std::string tree_of(const std::string& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return "";
    try {
        return capture_origin(path).tree;
    } catch (const Error&) {
        return "";
    }
}

/// Removes `prefix` and the digits after it, if there are any.
bool take_number(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    const std::size_t end = std::min(text.find_first_not_of("0123456789", prefix.size()), text.size());
    if (end == prefix.size()) return false;
    text.remove_prefix(end);
    return true;
}

}  // namespace

std::vector<std::vector<std::string>> runs_of(const std::vector<std::string>& paths) {
    std::vector<std::vector<std::string>> runs;
    std::map<std::string, std::size_t> places;  // by tree
    for (const std::string& path : paths) {
        const std::string tree = tree_of(path);
        const std::size_t place =
            tree.empty() ? runs.size() : places.try_emplace(tree, runs.size()).first->second;
        if (place == runs.size()) runs.emplace_back();
        runs[place].push_back(path);
    }
    return runs;
}

std::string free_capture_name(std::string_view program) {
    const std::string stem(base_name(program));
    std::string name = stem + std::string(kSuffix);
    for (int i = 2; exists(name); ++i) name = stem + "-" + std::to_string(i) + std::string(kSuffix);
    return name;
}

bool is_child_capture(std::string_view main_name, std::string_view name) {
    const std::string stem = without_suffix(std::string(main_name));
    if (!name.starts_with(stem) || !name.ends_with(kSuffix)) return false;
    if (name.size() < stem.size() + kSuffix.size()) return false;
    std::string_view parts = name.substr(stem.size(), name.size() - stem.size() - kSuffix.size());
    // ".rank3.4711.2", as far as it goes.
    const bool has_rank = take_number(parts, ".rank");
    const bool has_pid = take_number(parts, ".");
    take_number(parts, ".");
    return parts.empty() && (has_rank || has_pid);
}

std::vector<std::string> captures_beside(const std::string& path) {
    const std::string folder = path.substr(0, path.size() - base_name(path).size());
    std::vector<std::string> result;
    std::error_code error;
    for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (name.ends_with(kSuffix)) result.push_back(folder + name);
    }
    return result;
}

bool is_folder(const std::string& path) {
    std::error_code error;
    return fs::is_directory(path, error);
}

std::vector<std::string> captures_of_tree(const std::string& path) {
    const std::string tree = tree_of(path);
    if (tree.empty()) return {path};
    std::vector<std::string> others = captures_beside(path);
    std::error_code error;
    std::erase_if(others, [&](const std::string& other) {
        return fs::equivalent(other, path, error) || tree_of(other) != tree;
    });
    std::ranges::sort(others);
    others.insert(others.begin(), path);
    return others;
}

std::vector<std::string> captures_of(const std::string& path) {
    std::vector<std::string> result = captures_beside(path);
    std::erase_if(
        result, [&](const std::string& each) { return !is_child_capture(base_name(path), base_name(each)); });
    std::ranges::sort(result);
    if (exists(path)) result.insert(result.begin(), path);
    return result;
}

}  // namespace marey::cli
