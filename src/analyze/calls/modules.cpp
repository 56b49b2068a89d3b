// modules.cpp: reads module information from the values of their sites.
#include <marey/modules.h>

#include <unordered_map>
#include <utility>

#include "trace/trace_data.h"

namespace marey {

struct ModuleTable::Impl {
    explicit Impl(Trace of) : trace(std::move(of)) {}

    struct Module {
        ModuleInfo info;
        std::unordered_map<std::uint64_t, std::string_view> children;  ///< by address
    };

    std::string_view text_of(const Argument& value) const {
        return value.kind == ValueKind::String ? trace.string(value.string) : std::string_view();
    }
    static std::uint64_t number_of(const Argument& value) {
        return value.kind == ValueKind::Int ? static_cast<std::uint64_t>(value.integer) : 0;
    }

    void read_parameter(ModuleInfo& info, const Argument& value) const {
        const std::span<const Argument> items = items_of(trace, value);
        if (items.size() < 3 || items[1].kind != ValueKind::Array) return;
        ModuleParameter parameter{text_of(items[0]), items[1], items[2], {}};
        for (std::size_t i = 3; i + 1 < items.size(); i += 2) {
            if (items[i + 1].kind == ValueKind::Array)
                parameter.state.push_back({text_of(items[i]), items[i + 1]});
        }
        info.parameters.push_back(std::move(parameter));
    }

    void read_child(Module& module, const Argument& value) const {
        const std::span<const Argument> items = items_of(trace, value);
        if (items.size() == 2) module.children.emplace(number_of(items[1]), text_of(items[0]));
    }

    void read(Module& module, const Argument& value) {
        const std::string_view key = trace.string(value.key);
        ModuleInfo& info = module.info;
        if (key == module_keys::kParameter) {
            read_parameter(info, value);
        } else if (key == module_keys::kChild) {
            read_child(module, value);
        } else if (key == module_keys::kHasParts) {
            has_parts = true;
        } else if (key == module_keys::kKind) {
            info.is_optimizer = text_of(value) == "optimizer";
        } else if (key == module_keys::kClass) {
            info.class_name = text_of(value);
        } else if (key == module_keys::kNumber) {
            info.number = static_cast<std::uint32_t>(number_of(value));
        } else if (key == module_keys::kSelf) {
            info.self = number_of(value);
        } else if (key == module_keys::kClassAddress) {
            info.cls = number_of(value);
        } else if (key == module_keys::kFunction) {
            info.function = text_of(value);
        }
    }

    void read_all() {
        const TraceData& data = trace.data();
        for (const ArgumentSlice& slice : data.range_arguments) {
            Module* module = nullptr;
            for (std::uint32_t i = 0; i < slice.count; ++i) {
                const Argument& value = data.arguments[slice.first + i];
                if (value.role != ArgumentRole::Site) continue;
                if (module == nullptr) {
                    const std::uint32_t site = trace.ranges().site[slice.row];
                    const auto [place, is_new] = modules.try_emplace(site);
                    if (!is_new) break;
                    module = &place->second;
                }
                read(*module, value);
            }
        }
        std::erase_if(modules, [](const auto& entry) { return entry.second.info.class_name.empty(); });
    }

    const Module* of(Row range) const noexcept {
        const auto found = modules.find(trace.ranges().site[range]);
        return found == modules.end() ? nullptr : &found->second;
    }

    Trace trace;
    std::unordered_map<std::uint32_t, Module> modules;  ///< by site
    bool has_parts = false;
};

ModuleTable::ModuleTable(Trace trace) {
    auto impl = std::make_shared<Impl>(std::move(trace));
    impl->read_all();
    impl_ = std::move(impl);
}

bool ModuleTable::empty() const noexcept {
    return impl_->modules.empty();
}

bool ModuleTable::has_parts() const noexcept {
    return impl_->has_parts;
}

const ModuleInfo* ModuleTable::find_site(std::uint32_t site) const noexcept {
    const auto found = impl_->modules.find(site);
    return found == impl_->modules.end() ? nullptr : &found->second.info;
}

const ModuleInfo* ModuleTable::find(Row range) const noexcept {
    if (range >= impl_->trace.ranges().size()) return nullptr;
    const Impl::Module* const module = impl_->of(range);
    return module == nullptr ? nullptr : &module->info;
}

std::string ModuleTable::hierarchy(Row range) const {
    std::string text;
    if (empty() || range >= impl_->trace.ranges().size()) return text;
    const std::span<const Row> parents = impl_->trace.ranges().parent;
    std::vector<const Impl::Module*> around;
    for (; range != kNoRow; range = parents[range]) {
        const Impl::Module* const module = impl_->of(range);
        if (module != nullptr && !module->info.is_optimizer) around.push_back(module);
    }
    const Impl::Module* outer = nullptr;
    for (auto at = around.rbegin(); at != around.rend(); outer = *at++) {
        const ModuleInfo& info = (*at)->info;
        if (outer == nullptr) {
            text += "TOP";
        } else {
            text += '.';
            const auto name = outer->children.find(info.self);
            if (outer == *at) {
                text += "SELF";
            } else if (name != outer->children.end()) {
                text += name->second;
            } else {
                text += std::string(info.class_name) + "_" + std::to_string(info.number);
            }
        }
        text += '(';
        text += info.class_name;
        text += ")::forward";
    }
    return text;
}

std::string module_hierarchy(const Trace& trace, Row range) {
    return ModuleTable(trace).hierarchy(range);
}

}  // namespace marey
