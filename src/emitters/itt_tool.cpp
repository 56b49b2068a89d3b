// itt_tool.cpp: ITT, through its loading protocol: the collector in INTEL_LIBITTNOTIFY64, if set.
#include <dlfcn.h>

#include <atomic>
#include <string>
#include <unordered_map>

#include "base/environment.h"
#include "base/fork_mutex.h"
#include "emitters/annotation_backend.h"
#include "emitters/itt_protocol.h"

namespace marey {
namespace {

constexpr IttId kNoId{0, 0, 0};

/// The collector, loaded once and never unloaded.
class IttCollector {
  public:
    IttCollector() {
        const std::string path = environment_text("INTEL_LIBITTNOTIFY64");
        if (path.empty()) return;
        global_.library = dlopen(path.c_str(), RTLD_LAZY);
        if (global_.library == nullptr) {
            const char* const why = dlerror();
            reason_ = "cannot load the collector given in INTEL_LIBITTNOTIFY64: " +
                      std::string(why != nullptr ? why : path.c_str());
            return;
        }
        connect();
        if (calls_.task_begin == nullptr || calls_.task_end == nullptr) {
            reason_ = "the library given in INTEL_LIBITTNOTIFY64 does not support tasks: " + path;
            calls_ = {};
            return;
        }
        domain_ = calls_.domain_create != nullptr ? calls_.domain_create("marey") : create_domain();
        details_ = string("details");
    }

    const std::string& reason() const noexcept { return reason_; }
    const IttCalls& calls() const noexcept { return calls_; }
    /// Whether the collector is listening now.
    bool is_on() const noexcept { return domain_ != nullptr && domain_->flags != 0; }
    const IttDomain* domain() const noexcept { return domain_; }
    IttString* details_key() const noexcept { return details_; }

    /// The handle of a text; equal texts have the same handle. Any thread.
    IttString* string(const std::string& text) {
        const ScopedLock lock(mutex_);
        const auto [place, is_new] = strings_.try_emplace(text, nullptr);
        if (is_new) {
            const char* const kept = place->first.c_str();  // nodes of the map never move
            place->second = calls_.string_handle_create != nullptr ? calls_.string_handle_create(kept)
                                                                   : create_string(kept);
        }
        return place->second;
    }

  private:
    void connect() {
        const auto place = [](auto& function) { return reinterpret_cast<void**>(&function); };
        static IttFunction functions[] = {
            {"__itt_domain_create", place(calls_.domain_create), nullptr, nullptr, kIttGroupStructure},
            {"__itt_string_handle_create", place(calls_.string_handle_create), nullptr, nullptr,
             kIttGroupStructure},
            {"__itt_task_begin", place(calls_.task_begin), nullptr, nullptr, kIttGroupStructure},
            {"__itt_task_end", place(calls_.task_end), nullptr, nullptr, kIttGroupStructure},
            {"__itt_task_begin_overlapped", place(calls_.task_begin_overlapped), nullptr, nullptr,
             kIttGroupStructure},
            {"__itt_task_end_overlapped", place(calls_.task_end_overlapped), nullptr, nullptr,
             kIttGroupStructure},
            {"__itt_metadata_str_add", place(calls_.metadata_str_add), nullptr, nullptr, kIttGroupStructure},
            {nullptr, nullptr, nullptr, nullptr, 0},
        };
        global_.functions = functions;
        global_.is_mutex_initialized = 1;
        using Init = void (*)(IttGlobal*, int);
        if (const auto init = reinterpret_cast<Init>(dlsym(global_.library, "__itt_api_init"))) {
            init(&global_, kIttGroupAll);
        } else {
            for (IttFunction* function = functions; function->name != nullptr; ++function)
                *function->pointer = dlsym(global_.library, function->name);
        }
        global_.is_initialized = 1;
    }

    // A collector without functions for domains and strings reads the lists.
    IttDomain* create_domain() {
        global_.domains = new IttDomain{1, "marey", nullptr, 0, nullptr, nullptr};
        return global_.domains;
    }
    IttString* create_string(const char* text) {
        global_.strings = new IttString{text, nullptr, 0, nullptr, global_.strings};
        return global_.strings;
    }

    IttGlobal global_;
    IttCalls calls_;
    std::string reason_;
    IttDomain* domain_ = nullptr;  ///< null: no collector
    IttString* details_ = nullptr;
    ForkMutex mutex_;  ///< guards global_.strings too
    std::unordered_map<std::string, IttString*> strings_ MAREY_GUARDED_BY(mutex_);
};

IttCollector& collector() {
    static IttCollector& only = *new IttCollector;  // outlives every thread
    return only;
}

class IttTool final : public AnnotationBackend {
  public:
    IttTool() noexcept : AnnotationBackend(1) {}

    const std::string& unavailable() noexcept override { return collector().reason(); }

    int push(const std::string& name, const std::string& text) override {
        IttCollector& to = collector();
        if (!to.is_on()) return kNotTaken;
        to.calls().task_begin(to.domain(), kNoId, kNoId, to.string(name));
        add_details(to, kNoId, name, text);
        return -1;
    }
    int pop() override {
        const IttCollector& to = collector();
        to.calls().task_end(to.domain());  // even if the collector was switched off: the task has begun
        return -1;
    }
    std::uint64_t begin(const std::string& name, const std::string& text) override {
        IttCollector& to = collector();
        if (!to.is_on() || to.calls().task_begin_overlapped == nullptr) return 0;
        const std::uint64_t range = next_range_.fetch_add(1, std::memory_order_relaxed);
        to.calls().task_begin_overlapped(to.domain(), id_of(range), kNoId, to.string(name));
        add_details(to, id_of(range), name, text);
        return range;
    }
    void end(std::uint64_t range) override {
        const IttCollector& to = collector();
        if (range != 0 && to.calls().task_end_overlapped != nullptr)
            to.calls().task_end_overlapped(to.domain(), id_of(range));
    }
    /// A task that ends at once.
    void mark(const std::string& text) override {
        if (push(text, text) != kNotTaken) pop();
    }

  private:
    static IttId id_of(std::uint64_t range) noexcept {
        return {range, reinterpret_cast<std::uintptr_t>(&itt_tool), 0};
    }
    static void add_details(const IttCollector& to, IttId task, const std::string& name,
                            const std::string& text) {
        if (text.size() > name.size() && to.calls().metadata_str_add != nullptr)
            to.calls().metadata_str_add(to.domain(), task, to.details_key(), text.c_str(), text.size());
    }

    std::atomic<std::uint64_t> next_range_{1};
};

}  // namespace

AnnotationBackend& itt_tool() noexcept {
    static IttTool& tool = *new IttTool;
    return tool;
}

}  // namespace marey
