// file_defaults.cpp: finds the files and passes their values to the command line's own table of options.
#include "cli/file_defaults.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <marey/error.h>

#include "base/environment.h"

namespace marey::cli {
namespace {

namespace fs = std::filesystem;

/// A file from another person's repository must not choose what to overwrite.
constexpr std::string_view kNotInFiles[] = {"output", "force", "help"};

fs::path nearest_pyproject() {
    std::error_code ignored;
    for (fs::path folder = fs::current_path(ignored); !folder.empty(); folder = folder.parent_path()) {
        if (fs::is_regular_file(folder / "pyproject.toml", ignored)) return folder / "pyproject.toml";
        if (folder == folder.root_path()) break;
    }
    return {};
}

fs::path user_file() {
    const std::string folder = environment_text("XDG_CONFIG_HOME");
    const std::string home = environment_text("HOME");
    if (folder.empty() && home.empty()) return {};
    return (folder.empty() ? fs::path(home) / ".config" : fs::path(folder)) / "marey.toml";
}

void set_default(CLI::App& verb, const CLI::ConfigItem& item, const std::string& file) {
    std::string name = item.name;
    std::replace(name.begin(), name.end(), '_', '-');
    const std::string place = file + ": " + item.name + " for marey " + verb.get_name();
    if (std::find(std::begin(kNotInFiles), std::end(kNotInFiles), name) != std::end(kNotInFiles))
        throw Error(place + ": cannot be set in a file");
    CLI::Option* const option = verb.get_option_no_throw("--" + name);
    if (option == nullptr) throw Error(place + ": unknown option (see marey " + verb.get_name() + " --help)");
    if (option->count() > 0) return;  // the command line, or a file before this one
    try {
        const bool is_flag = option->get_items_expected_max() == 0;
        if (is_flag) {
            if (item.inputs != std::vector<std::string>{"true"} &&
                item.inputs != std::vector<std::string>{"false"})
                throw Error(place + ": expected true or false");
            if (item.inputs.front() == "false") return;
        }
        for (const std::string& value : item.inputs) option->add_result(value);
        option->run_callback();
    } catch (const CLI::ParseError& error) {
        throw Error(place + ": " + error.what());
    }
}

void read_defaults(CLI::App& verb, const fs::path& path, std::vector<std::string> section) {
    std::ifstream stream(path);
    if (!stream) return;
    section.push_back(verb.get_name());
    std::vector<CLI::ConfigItem> items;
    try {
        items = CLI::ConfigTOML().from_config(stream);
    } catch (const CLI::Error& error) {
        throw Error(path.string() + ": " + error.what());
    }
    for (const CLI::ConfigItem& item : items) {
        const bool is_value = item.name != "++" && item.name != "--";  // which mark sections
        if (is_value && item.parents == section) set_default(verb, item, path.string());
    }
}

}  // namespace

void set_file_defaults(CLI::App& verb) {
    if (const fs::path project = nearest_pyproject(); !project.empty())
        read_defaults(verb, project, {"tool", "marey"});
    if (const fs::path own = user_file(); !own.empty()) read_defaults(verb, own, {});
}

}  // namespace marey::cli
