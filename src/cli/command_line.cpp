// command_line.cpp: reads the command line with CLI11, and defaults from files, and runs the verb;
// writes completion scripts for shells.
#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>

#include <marey/error.h>

#include "base/environment.h"
#include "cli/capture_argument.h"
#include "cli/python_program.h"
#include "cli/terminal.h"
#include "cli/text_format.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

inline constexpr const char* kShells[] = {"bash", "zsh", "fish"};

/// Lists the words that can follow those typed after "marey", the last of which is not complete: a word in
/// each line, a tab, and its description. Nothing: a file, or any text.
std::string completions(const CLI::App& command, const std::vector<std::string>& typed) {
    std::string lines;
    const auto add = [&](const std::string& word, const std::string& description) {
        if (word.starts_with(typed.back())) lines += fmt::format("{}\t{}\n", word, description);
    };
    if (typed.size() == 1 || (typed.size() == 2 && typed[0] == "help")) {
        for (const CLI::App* verb : command.get_subcommands({}))
            add(verb->get_name(), verb->get_description());
        return lines;
    }
    const std::vector<const CLI::App*> named = command.get_subcommands(
        [&](const CLI::App* verb) { return !typed.empty() && verb->get_name() == typed[0]; });
    if (named.empty()) return "";
    const std::string& before = typed[typed.size() - 2];
    for (const CLI::Option* option : named.front()->get_options()) {
        if (option->get_group().empty()) continue;  // an old name
        std::vector<std::string> names;
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
        for (const std::string& name : option->get_snames()) names.push_back("-" + name);
        const bool takes_value = option->get_items_expected_max() > 0;
        const std::string type = option->get_type_name();
        const bool is_first_word = names.empty() && typed.size() == 2 && !typed.back().starts_with('-');
        if (takes_value && (is_first_word || std::ranges::find(names, before) != names.end())) {
            lines.clear();
            if (type.find('|') == type.npos) return "";
            for (const std::string& choice : split(type, '|')) add(choice, "");
            return lines;
        }
        if (!typed.back().starts_with('-')) continue;
        for (const std::string& name : names) add(name, option->get_description());
    }
    return lines;
}

/// Scripts that ask this command, in the order of kShells.
constexpr const char* kCompletionScripts[] = {
    R"shell(# bash completion for marey: eval "$(marey completion bash)"
_marey() {
    local IFS=$'\n'
    COMPREPLY=($("${COMP_WORDS[0]}" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1))
    [ ${#COMPREPLY[@]} -ne 0 ] || COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o filenames -F _marey marey
)shell",
    R"shell(#compdef marey
# zsh completion for marey: eval "$(marey completion zsh)"
_marey() {
    local -a found
    found=("${(@f)$("$words[1]" --complete "${(@)words[2,CURRENT]}" 2>/dev/null | sed 's/:/\\:/g; s/\t/:/')}")
    if [[ -n "$found[1]" ]]; then _describe marey found; else _files; fi
}
compdef _marey marey
)shell",
    R"shell(# fish completion for marey: marey completion fish | source
complete -c marey -a '(set -l words (commandline -opc) (commandline -ct); marey --complete $words[2..])'
)shell"};

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

/// A line of such a file.
struct FileDefault {
    std::string name;
    std::vector<std::string> values;
};

void set_default(CLI::App& verb, const FileDefault& item, const std::string& file) {
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
            if (item.values != std::vector<std::string>{"true"} &&
                item.values != std::vector<std::string>{"false"})
                throw Error(place + ": expected true or false");
            if (item.values.front() == "false") return;
        }
        for (const std::string& value : item.values) option->add_result(value);
        option->run_callback();
    } catch (const CLI::ParseError& error) {
        throw Error(place + ": " + error.what());
    }
}

/// Moves a value from the front of a line to `value`: true, false, a number, or a text in quotation marks.
bool take_value(std::string_view& line, std::string& value) {
    const char quote = line.front();
    std::size_t end = 0;
    if (quote == '"' || quote == '\'') {
        for (end = 1; end < line.size() && line[end] != quote; ++end) {
            if (quote == '"' && line[end] == '\\') ++end;
            if (end < line.size()) value += line[end];
        }
        if (++end > line.size()) return false;
    } else {
        end = std::min(line.find_first_of(" \t\r,]#"), line.size());
        value = line.substr(0, end);
        if (value != "true" && value != "false" && value.find_first_not_of("+-.0123456789") != value.npos)
            return false;
    }
    line.remove_prefix(end);
    return true;
}

/// Adds the values in the rest of a line: one, or those of a list, which may go on in the next line.
bool take_values(std::string_view line, bool& is_list, std::vector<std::string>& values) {
    bool has_value = is_list;
    while (true) {
        line.remove_prefix(std::min(line.find_first_not_of(is_list ? " \t\r," : " \t\r"), line.size()));
        if (line.empty() || line.front() == '#') return has_value;
        if (line.front() == (is_list ? ']' : '[') && is_list == has_value) {
            is_list = !is_list;
            line.remove_prefix(1);
        } else if ((has_value && !is_list) || !take_value(line, values.emplace_back())) {
            return false;
        }
        has_value = true;
    }
}

/// The entries of one section of a TOML file. The other sections are not checked.
std::vector<FileDefault> read_section(std::istream& file, const std::string& section,
                                      const std::string& path) {
    constexpr std::string_view kKey = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    std::vector<FileDefault> entries;
    std::string whole;
    bool is_ours = false, is_list = false;
    std::size_t number = 0;
    const auto require = [&](bool is_valid) {
        if (!is_valid)
            throw Error(fmt::format("{}: line {}: expected KEY = VALUE, with texts in quotation marks", path,
                                    number));
    };
    while (std::getline(file, whole)) {
        ++number;
        std::string_view line = whole;
        line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
        if (is_list) {
            require(take_values(line, is_list, entries.back().values));
        } else if (line.starts_with('[')) {
            const std::size_t end = std::min(line.find_first_of("] \t\r#"), line.size());
            is_ours = line.substr(1, end - 1) == section;
            require(!is_ours || line.substr(end).starts_with(']'));
        } else if (is_ours && !line.empty() && line.front() != '#') {
            const std::size_t end = std::min(line.find_first_not_of(kKey), line.size());
            const std::size_t equals = line.find_first_not_of(" \t", end);
            require(end > 0 && equals != line.npos && line[equals] == '=');
            entries.push_back({std::string(line.substr(0, end)), {}});
            require(take_values(line.substr(equals + 1), is_list, entries.back().values));
        }
    }
    require(!is_list);
    return entries;
}

/// Sets the options of a verb that were not given on the command line. The nearest pyproject.toml, in the
/// current folder or above it, comes before the user's own file. Throws marey::Error, with the file, for
/// unknown options and invalid values, and for options that choose files to write.
void set_file_defaults(CLI::App& verb) {
    for (const auto& [path, group] :
         {std::pair(nearest_pyproject(), "tool.marey."), std::pair(user_file(), "")}) {
        std::ifstream file(path);
        for (const FileDefault& entry : read_section(file, group + verb.get_name(), path.string()))
            set_default(verb, entry, path.string());
    }
}

// CLI11 keeps the words after the first unknown one in the app; Options::command registers where to copy
// them.
using CommandSinks = std::vector<std::pair<CLI::App*, std::vector<std::string>*>>;
CommandSinks& command_sinks() {
    static CommandSinks sinks;
    return sinks;
}

int fail(const std::string& text) {
    print_error("marey: " + printable(text) + "\n");
    return kFailure;
}

int usage_error(const std::string& verb, const std::string& text) {
    const std::string command = verb.empty() ? "marey" : "marey " + verb;
    const std::string subject = verb.empty() ? "" : verb + ": ";
    return fail(subject + text + " (see " + command + " --help)");
}

/// The same help with every CLI11: newer ones leave out "Usage" and fill paragraphs, which breaks lines
/// twice.
class HelpFormatter : public CLI::Formatter {
  public:
    HelpFormatter() {
        label("SUBCOMMAND", "COMMAND");
        label("POSITIONALS", "Positionals");
        keep_lines(*this);
    }

    std::string make_usage(const CLI::App* app, std::string name) const override {
        std::string usage = CLI::Formatter::make_usage(app, std::move(name));
        CLI::detail::trim(usage);
        return (usage.starts_with("Usage") ? usage : "Usage: " + usage) + "\n";
    }

  private:
    static void keep_lines(auto& formatter) {
        if constexpr (requires { formatter.enable_footer_formatting(false); }) {
            formatter.enable_footer_formatting(false);
            formatter.enable_description_formatting(false);
        }
    }
};

struct Command {
    CLI::App app{"Marey: a tracing profiler for C++, Python and PyTorch.", "marey"};
    std::vector<std::pair<CLI::App*, std::unique_ptr<Verb>>> verbs;
    CLI::App* help = nullptr;
    std::string help_topic;
    CLI::App* completion = nullptr;
    std::string shell;
    bool version = false;

    Command() {
        app.formatter(std::make_shared<HelpFormatter>());
        app.option_defaults()->group("Options");
        app.set_help_flag("-h,--help", "Show this help");
        app.add_flag("--version", version, "Show the version");
        app.require_subcommand(0, 1);
        app.footer(
            "Start with:  marey run -- ./app     then:  marey report app.marey\n"
            "Run 'marey COMMAND --help' for the options of a command.");
        for (const VerbEntry& entry : all_verbs()) {
            std::unique_ptr<Verb> verb = entry.make();
            CLI::App* sub = app.add_subcommand(entry.name, verb->help());
            sub->set_help_flag("-h,--help", "Show this help");
            sub->group("Commands");
            sub->footer(verb->details());
            Options options(*sub);
            verb->declare(options);
            verbs.emplace_back(sub, std::move(verb));
        }
        completion = app.add_subcommand("completion", "Print a completion script for a shell");
        completion->group("Commands");
        completion->footer(
            "For bash or zsh:  eval \"$(marey completion bash)\"\n"
            "For fish:         marey completion fish | source");
        Options(*completion)
            .choice(shell, "shell", {std::begin(kShells), std::end(kShells)}, "Shell to complete in");
        completion->get_option("shell")->required();
        help = app.add_subcommand("help", "Show help for marey or for one command");
        help->group("Commands");
        help->add_option("command", help_topic, "Command to describe (all)")->type_name("");
    }
};

/// The verb that was typed, for messages; "" when none was recognized.
std::string typed_verb(const Command& command) {
    const auto parsed = command.app.get_subcommands();
    return parsed.empty() ? "" : parsed.front()->get_name();
}

void write_help(const CLI::App& app, const char* command) {
    std::string text = app.help(command);
    if (!text.ends_with('\n')) text += '\n';
    write_out(text);
}

/// The number of letters to insert, remove, replace or swap to get from one word to the other.
std::size_t edit_distance(std::string_view from, std::string_view to) {
    std::vector<std::vector<std::size_t>> best(from.size() + 1, std::vector<std::size_t>(to.size() + 1));
    for (std::size_t i = 0; i <= from.size(); ++i) {
        for (std::size_t j = 0; j <= to.size(); ++j) {
            if (i == 0 || j == 0) {
                best[i][j] = i + j;
                continue;
            }
            best[i][j] = std::min({best[i - 1][j] + 1, best[i][j - 1] + 1,
                                   best[i - 1][j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1)});
            const bool is_swap = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
            if (is_swap) best[i][j] = std::min(best[i][j], best[i - 2][j - 2] + 1);
        }
    }
    return best.back().back();
}

int unknown_verb(const Command& command, const std::string& word) {
    constexpr std::size_t kLongestWord = 20;  // more is not a misspelt verb
    std::string nearest;
    std::size_t least = 3;  // that many mistakes make another word
    for (const CLI::App* sub : command.app.get_subcommands({})) {
        const std::size_t distance =
            word.size() > kLongestWord ? least : edit_distance(word, sub->get_name());
        if (distance >= least) continue;
        least = distance;
        nearest = sub->get_name();
    }
    return usage_error(
        "", "unknown command '" + word + "'" + (nearest.empty() ? "" : ": did you mean '" + nearest + "'?"));
}

int show_help(Command& command) {
    if (command.help_topic.empty()) {
        write_help(Command().app, "");  // a fresh one: this one would show the help of the verb `help`
        return kSuccess;
    }
    for (auto& [sub, verb] : command.verbs) {
        if (sub->get_name() == command.help_topic) {
            write_help(*sub, "marey");
            return kSuccess;
        }
    }
    return unknown_verb(command, command.help_topic);
}

bool is_verb(const Command& command, const std::string& word) {
    for (const CLI::App* sub : command.app.get_subcommands({})) {
        if (sub->get_name() == word) return true;
    }
    return false;
}

/// The verb and its options: OPTION=VALUE, several times if the option has several values. A running process
/// is replaced by its capture.
std::vector<std::string> given_words(const CLI::App& verb) {
    std::vector<std::string> words{verb.get_name()};
    for (const CLI::Option* const option : verb.get_options()) {
        const std::string name = option->get_single_name();
        for (const std::string& value :
             name == "FILE" ? with_captures_of_processes(option->results()) : option->results())
            words.push_back(name + "=" + value);
    }
    return words;
}

int run_verb(Command& command) {
    for (auto& [sub, verb] : command.verbs) {
        if (!sub->parsed()) continue;
        const int code = verb->run();
        if (code == kRunInPython) exec_sql_command(given_words(*sub));
        return code;
    }
    return usage_error("", "no command given");
}

int dispatch(int argc, char** argv) {
    Command command;
    if (argc < 2) {
        print_error(command.app.help());
        return kFailure;
    }
    if (std::string_view(argv[1]) == "--complete") {
        write_out(completions(command.app, {argv + 2, argv + argc}));
        return kSuccess;
    }
    if (argv[1][0] != '-' && !is_verb(command, argv[1])) return unknown_verb(command, argv[1]);
    // CLI11 does not pass "--" through; the words after it belong to the program to run.
    char** const end = argv + argc;
    char** const dashes =
        std::find_if(argv, end, [](const char* word) { return std::string_view(word) == "--"; });
    try {
        command.app.parse(static_cast<int>(dashes - argv), argv);
    } catch (const CLI::CallForHelp&) {
        write_help(command.app, "");  // the help of the verb, if one was typed
        return kSuccess;
    } catch (const CLI::ParseError& error) {
        return usage_error(typed_verb(command), error.what());
    }
    if (command.version) {
        write_out("marey " MAREY_VERSION "\n");
        return kSuccess;
    }
    if (command.help->parsed()) return show_help(command);
    if (command.completion->parsed()) {
        write_out(kCompletionScripts[std::ranges::find(kShells, command.shell) - kShells]);
        return kSuccess;
    }
    for (auto& [sub, verb] : command.verbs) {
        if (sub->parsed()) set_file_defaults(*sub);
    }
    for (auto& [app, words] : command_sinks()) {
        if (!app->parsed()) continue;
        *words = app->remaining();
        // marey run ./app -- x: the dashes belong to the program.
        words->insert(words->end(), words->empty() && dashes != end ? dashes + 1 : dashes, end);
        return run_verb(command);
    }
    if (dashes != end) return usage_error(typed_verb(command), "unexpected '--'");
    return run_verb(command);
}

}  // namespace

void Options::required(std::string& value, const std::string& placeholder, const std::string& help) {
    app_.add_option(placeholder, value, help)->required()->type_name("");
}

void Options::required(std::vector<std::string>& values, const std::string& placeholder,
                       const std::string& help) {
    app_.add_option(placeholder, values, help)->required()->type_name("");
}

void Options::optional(std::string& value, const std::string& placeholder, const std::string& help) {
    app_.add_option(placeholder, value, help)->type_name("");
}

void Options::optional(std::vector<std::string>& values, const std::string& placeholder,
                       const std::string& help) {
    app_.add_option(placeholder, values, help)->type_name("");
}

void Options::text(std::string& value, const std::string& names, const std::string& placeholder,
                   const std::string& help) {
    app_.add_option(names, value, help)->type_name(placeholder);
}

void Options::texts(std::vector<std::string>& values, const std::string& names,
                    const std::string& placeholder, const std::string& help) {
    app_.add_option(names, values, help)
        ->type_name(placeholder)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void Options::number(std::optional<std::uint64_t>& value, const std::string& names, const std::string& help) {
    app_.add_option(names, value, help)->type_name("N")->check([](const std::string& given) {
        const bool digits = !given.empty() && given.find_first_not_of("0123456789") == std::string::npos;
        return digits ? std::string() : "invalid value '" + given + "': expected a non-negative integer";
    });
}

void Options::percent(double& value, const std::string& names, const std::string& help) {
    app_.add_option(names, value, help)->type_name("PERCENT")->check(CLI::Range(0.0, 100.0));
}

void Options::choice(std::string& value, const std::string& names, const std::vector<std::string>& choices,
                     const std::string& help) {
    std::string list;
    for (const std::string& choice : choices) list += (list.empty() ? "" : "|") + choice;
    app_.add_option(names, value, help)->type_name(list)->check([choices, list](const std::string& given) {
        for (const std::string& choice : choices) {
            if (choice == given) return std::string();
        }
        return "invalid value '" + given + "': expected one of " + list;
    });
}

void Options::flag(bool& value, const std::string& names, const std::string& help) {
    app_.add_flag(names, value, help);
}

void Options::old_name(const std::string& old, const std::string& name) {
    CLI::Option* const option = app_.get_option(name);
    const auto forward = [option, old, name](const std::vector<std::string>& values) {
        print_error("marey: " + old + " is now called " + name + "\n");
        for (const std::string& value : values) option->add_result(value);
        option->run_callback();
    };
    if (option->get_items_expected_max() == 0) {
        app_.add_flag_function(old, [forward](std::int64_t) { forward({"true"}); })->group("");
    } else {
        app_.add_option_function<std::vector<std::string>>(old, forward)->allow_extra_args(false)->group("");
    }
}

void Options::flag_or_text(std::string& value, const std::string& names, const std::string& usual,
                           const std::string& placeholder, const std::string& help) {
    app_.add_flag(names + "{" + usual + "}", value, help)->type_name("[=" + placeholder + "]");
}

void Options::command(std::vector<std::string>& words) {
    app_.prefix_command();
    command_sinks().emplace_back(&app_, &words);
}

int run_command_line(int argc, char** argv) {
    try {
        return dispatch(argc, argv);
    } catch (const Error& error) {
        return fail(error.what());
    } catch (const std::bad_alloc&) {
        return fail("out of memory");
    } catch (const std::exception& error) {
        return fail(std::string("internal error: ") + error.what());
    }
}

}  // namespace marey::cli
