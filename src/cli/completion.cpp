// completion.cpp: writes the completion scripts of bash, zsh and fish.
#include "cli/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "cli/text_format.h"

namespace marey::cli {
namespace {

struct CompletedOption {
    std::vector<std::string> names;  ///< with their dashes
    std::string help;
    bool takes_value = false;
    std::vector<std::string> choices;  ///< empty: a file or any text
};

std::vector<CompletedOption> options_of(const CLI::App& verb) {
    std::vector<CompletedOption> options;
    for (const CLI::Option* option : verb.get_options()) {
        CompletedOption its;
        for (const std::string& name : option->get_lnames()) its.names.push_back("--" + name);
        for (const std::string& name : option->get_snames()) its.names.push_back("-" + name);
        if (its.names.empty()) continue;  // a positional one
        its.help = option->get_description();
        its.takes_value = option->get_items_expected_max() > 0;
        const std::string type = option->get_type_name();
        if (its.takes_value && type.find('|') != type.npos) {
            for (std::size_t at = 0; at <= type.size();) {
                const std::size_t end = std::min(type.find('|', at), type.size());
                its.choices.push_back(type.substr(at, end - at));
                at = end + 1;
            }
        }
        options.push_back(std::move(its));
    }
    return options;
}

std::string joined(const std::vector<std::string>& words) {
    return fmt::format("{}", fmt::join(words, " "));
}

std::string bash_script(const CLI::App& command) {
    std::string verbs, values, words;
    for (const CLI::App* verb : command.get_subcommands({})) {
        verbs += (verbs.empty() ? "" : " ") + verb->get_name();
        std::vector<std::string> names;
        for (const CompletedOption& option : options_of(*verb)) {
            names.insert(names.end(), option.names.begin(), option.names.end());
            if (option.choices.empty()) continue;
            for (const std::string& name : option.names)
                values += fmt::format("        '{} {}') words={} ;;\n", verb->get_name(), name,
                                      shell_word(joined(option.choices)));
        }
        words += fmt::format("            {}) words={} ;;\n", verb->get_name(), shell_word(joined(names)));
    }
    return fmt::format(R"shell(# bash completion for marey: eval "$(marey completion bash)"
_marey() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} words=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W '{}' -- "$current"))
        return
    fi
    case "${{COMP_WORDS[1]}} $previous" in
        'help '*) words='{}' ;;
        'completion '*) words='bash zsh fish' ;;
{}    esac
    if [ -z "$words" ] && [ "${{current#-}}" != "$current" ]; then
        case "${{COMP_WORDS[1]}}" in
{}        esac
    fi
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    else
        COMPREPLY=($(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F _marey marey
)shell",
                       verbs, verbs, values, words);
}

std::string zsh_text(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string zsh_script(const CLI::App& command) {
    std::string verbs, cases;
    for (const CLI::App* verb : command.get_subcommands({})) {
        verbs += "        " + shell_word(verb->get_name() + ":" + zsh_text(verb->get_description())) + "\n";
        cases += fmt::format("        {})\n            _arguments", verb->get_name());
        for (const CompletedOption& option : options_of(*verb)) {
            const std::string values = option.choices.empty() ? "_files" : "(" + joined(option.choices) + ")";
            for (const std::string& name : option.names) {
                std::string spec = "*" + name + "[" + zsh_text(option.help) + "]";
                if (option.takes_value) spec += ":value:" + values;
                cases += " \\\n                " + shell_word(spec);
            }
        }
        cases += " \\\n                '*:file:_files' ;;\n";
    }
    return fmt::format(R"shell(#compdef marey
# zsh completion for marey: eval "$(marey completion zsh)"
_marey() {{
    local -a verbs
    verbs=(
{}    )
    if (( CURRENT == 2 )); then
        _describe command verbs
        return
    fi
    local verb=$words[2]
    shift words
    (( CURRENT-- ))
    case $verb in
        completion) _values shell bash zsh fish ;;
{}    esac
}}
compdef _marey marey
)shell",
                       verbs, cases);
}

std::string fish_script(const CLI::App& command) {
    std::string text = "# fish completion for marey: marey completion fish | source\n";
    for (const CLI::App* verb : command.get_subcommands({})) {
        text += fmt::format("complete -c marey -n __fish_use_subcommand -f -a {} -d {}\n", verb->get_name(),
                            shell_word(verb->get_description()));
        for (const CompletedOption& option : options_of(*verb)) {
            text += fmt::format("complete -c marey -n '__fish_seen_subcommand_from {}'", verb->get_name());
            for (const std::string& name : option.names)
                text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
            if (!option.choices.empty()) {
                text += " -x -a " + shell_word(joined(option.choices));
            } else if (option.takes_value) {
                text += " -r";
            }
            text += " -d " + shell_word(option.help) + "\n";
        }
    }
    return text + "complete -c marey -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n";
}

}  // namespace

std::string completion_script(const CLI::App& command, const std::string& shell) {
    if (shell == "bash") return bash_script(command);
    return shell == "zsh" ? zsh_script(command) : fish_script(command);
}

}  // namespace marey::cli
